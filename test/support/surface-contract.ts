import { describe, expect, test } from "vitest";
import { z } from "zod";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import type { Step } from "../../lab/support/fake-gateway.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";
import { defineTool, type Tool } from "../../src/tools/tool.ts";
import type { Shown, Surface } from "./surface.ts";
import type { WorldOptions } from "./surface-world.ts";

export type StartSurface = (options?: WorldOptions) => Promise<Surface>;

/** The differences of a surface, each with its reason. */
export interface Differences {
  /** Set if only one person uses the surface, and everything is addressed to the bot. */
  noOthers?: string;
  noEdits?: string;
  noFiles?: string;
  noRedelivery?: string;
  noRestart?: string;
  /** Buttons that open a form elsewhere answer with a command to copy. */
  noForms?: string;
  /** True if the surface shows one answer at a time. */
  noParallel?: string;
  noPrivateFiles?: string;
  /** Set if the surface has no messages except those of its only conversation. */
  noSearch?: string;
  /** Set if a complete answer has no buttons. */
  noAnswerButtons?: string;
  /** Set if everyone sees the answer to a command that a person types as a message. */
  noPrivateWords?: string;
}

/** Tests what people see of the bot on each surface, with the platform's own SDK. The model's answers are scripted. */
export function surfaceContract(name: string, start: StartSurface, not: Differences = {}): void {
  describe(`the bot on ${name}`, () => {
    describeConversations(start, not);
    describeSecondThoughts(start, not);
    describeEndings(start, not);
    describeCommands(start, not);
    describeTools(start, not);
    describeSources(start, not);
    describeSearch(start, not);
    describeSchedules(start, not);
    describeCatchup(start, not);
  });
}

const WORDS = Array.from({ length: 40 }, (_, index) => `word ${index} `);
const WHOLE = WORDS.join("").trim();

function textOf(request: ChatRequest | undefined): string {
  return (request?.messages ?? []).map(({ content }) => JSON.stringify(content)).join("\n");
}

/** The texts of all notes, when there are this many and the bot is idle. */
async function finished(surface: Surface, count = 1): Promise<string[]> {
  await surface.until(() => surface.notes().filter(({ text }) => text !== "").length >= count, `${count} notes`);
  await surface.idle();
  return surface.notes().map(({ text }) => text);
}

/** The note whose text matches, when the bot is idle. */
async function findNote(surface: Surface, words: RegExp): Promise<Shown> {
  const find = () => surface.notes().find(({ text }) => words.test(text));
  const { id } = await surface.until(find, `a note that matches ${words}`);
  await surface.idle();
  const note = surface.notes().find((one) => one.id === id);
  if (note === undefined) throw new Error(`The note that matched ${words} is gone.`);
  return note;
}

function describeConversations(start: StartSurface, not: Differences): void {
  test("the bot answers a mention with the model's own words, and notifies no one", async () => {
    const surface = await start();
    surface.world.script(WORDS);
    await surface.ask("tell me");
    expect(await finished(surface)).toEqual([WHOLE]);
    expect(surface.pings()).toEqual([]);
  });

  test("the bot answers the next message of a conversation without a mention, and knows the earlier messages", async () => {
    const surface = await start();
    surface.world.script(["One."], ["Two."], ["Apart."]);
    await surface.ask("first");
    await finished(surface);
    await surface.goOn("second");
    expect(await finished(surface, 2)).toEqual(["One.", "Two."]);
    await surface.ask("another matter");
    await finished(surface, 3);
    const { asked } = surface.world;
    expect(textOf(asked[1])).toMatch(/first.*One\..*second/s);
    expect(asked[2]?.messages.filter(({ role }) => role === "assistant")).toEqual([]);
  });

  test.skipIf(not.noOthers)("the bot answers a direct message without a mention, to its author alone", async () => {
    const surface = await start();
    surface.world.script(["Hello."]);
    await surface.askDirectly("hi");
    await finished(surface);
    expect(surface.notes()).toMatchObject([{ text: "Hello.", onlyFor: "ada" }]);
  });

  test.skipIf(not.noOthers)("the bot tells the model which person wrote which message", async () => {
    const surface = await start();
    surface.world.script(["One."], ["Two."]);
    await surface.ask(`soup for ${surface.mentionOf("bob")}?`);
    await finished(surface);
    await surface.goOn("Salad.", { who: "bob" });
    await finished(surface, 2);
    expect(surface.world.asked[1]?.messages.slice(-3)).toMatchObject([
      { content: "Ada: soup for @Bob?", name: "Ada" },
      { content: "One." },
      { content: "Bob: Salad.", name: "Bob" },
    ]);
  });

  test.skipIf(not.noOthers)("the bot stays out of a conversation once someone addresses another person", async () => {
    const surface = await start();
    surface.world.script(["One."], ["Two."]);
    await surface.ask("first");
    await finished(surface);
    await surface.goOn(`${surface.mentionOf("bob")} what do you think?`);
    await surface.idle();
    await surface.goOn("not much", { who: "bob" });
    await surface.idle();
    await surface.goOn(`${surface.mentionOf("bot")} and you?`);
    expect(await finished(surface, 2)).toEqual(["One.", "Two."]);
    expect(surface.world.asked).toHaveLength(2);
  });

  test.skipIf(not.noParallel)("the bot answers five questions at once, each with its own words", async () => {
    const surface = await start();
    const answers = Array.from({ length: 5 }, (_, index) => [`Answer ${index}: `, ...WORDS]);
    surface.world.script(...answers);
    for (const [index] of answers.entries()) await surface.ask(`question ${index}`);
    const texts = await finished(surface, answers.length);
    expect(texts.toSorted()).toEqual(answers.map((answer) => answer.join("").trim()).toSorted());
  });

  test.skipIf(not.noRedelivery)("the bot answers a question only once if the platform delivers it twice", async () => {
    const surface = await start();
    surface.world.script(["Once."], ["Twice."]);
    const said = await surface.ask("hello");
    await finished(surface);
    await surface.redeliver(said);
    expect(await finished(surface)).toEqual(["Once."]);
    expect(surface.world.asked).toHaveLength(1);
  });

  test.skipIf(not.noOthers)("the bot marks a waiting question until it answers the question", async () => {
    const surface = await start();
    const end = Promise.withResolvers<void>();
    surface.world.script(["One,", end.promise, " two."], ["Three."]);
    await surface.ask("count");
    await surface.until(() => surface.notes()[0]?.text.startsWith("One,"), "the first words");
    const second = await surface.goOn("go on");
    await surface.until(() => surface.isMarked(second), "the sign");
    end.resolve();
    expect(await finished(surface, 2)).toEqual(["One, two.", "Three."]);
    await surface.until(() => !surface.isMarked(second), "the question without its sign");
  });

  test.skipIf(not.noFiles)("the bot shows the model the text of an attached file", async () => {
    const surface = await start();
    surface.world.script(["On floor 3."]);
    const bytes = new TextEncoder().encode("It is stuck on floor 3.");
    await surface.ask("where is the lift?", { files: [{ name: "lift.txt", bytes }] });
    await finished(surface);
    expect(textOf(surface.world.asked[0])).toMatch(/where is the lift\?.*lift\.txt.*It is stuck on floor 3\./s);
  });
}

function describeSecondThoughts(start: StartSurface, { noEdits, noOthers, noAnswerButtons }: Differences): void {
  test.skipIf(noEdits)(
    "an edited question restarts the answer in its message, and a deleted question removes it",
    async () => {
      const surface = await start();
      const never = Promise.withResolvers<void>();
      surface.world.script(["Old", never.promise], ["New answer", never.promise]);
      const said = await surface.ask("the first wording");
      const { id } = await surface.until(
        () => surface.notes().find(({ text }) => text.startsWith("Old")),
        "the answer",
      );
      await surface.rewrite(said, "the second wording");
      await surface.until(() => surface.notes()[0]?.text.startsWith("New answer"), "the new answer");
      expect(surface.notes().map((note) => note.id)).toEqual([id]);
      await surface.takeBack(said);
      await surface.until(() => surface.notes().length === 0, "the answer to go");
      await surface.idle();
      expect(textOf(surface.world.asked[1])).not.toContain("the first wording");
    },
  );

  test.skipIf(noEdits)(
    "the bot answers an edited question again in the same message, which shows both answers",
    async () => {
      const surface = await start();
      surface.world.script(["Paris."], ["Rome."]);
      const said = await surface.ask("The capital of France?");
      await finished(surface);
      await surface.rewrite(said, "The capital of Italy?");
      const second = await findNote(surface, /^Rome\.$/);
      await surface.press(second, "show");
      const first = await findNote(surface, /^Paris\./);
      expect(first.id).toBe(second.id);
      await surface.press(first, "show");
      await findNote(surface, /^Rome\.$/);
      expect(surface.notes()).toHaveLength(1);
    },
  );

  test.skipIf(noAnswerButtons)("Regenerate answers the question again in the same message", async () => {
    const surface = await start();
    surface.world.script(["1."], ["2."]);
    await surface.ask("count");
    const first = await findNote(surface, /^1\.$/);
    await surface.press(first, "regenerate");
    expect((await findNote(surface, /^2\.$/)).id).toBe(first.id);
    expect(surface.notes()).toHaveLength(1);
    expect(textOf(surface.world.asked[1])).not.toContain("1.");
  });

  test.skipIf(noAnswerButtons)(
    "Explain shows the model's input to the person who presses it, and to no one else",
    async () => {
      const surface = await start();
      surface.world.script(["Paris."]);
      await surface.ask("The capital of France?");
      await surface.press(await findNote(surface, /^Paris\.$/), "explain", noOthers ? "ada" : "bob");
      const { onlyFor } = await findNote(surface, /capital of France\?/);
      expect(onlyFor).toBe(noOthers ? undefined : "bob");
      expect(surface.notes().map(({ text }) => text)).toContain("Paris.");
    },
  );

  test.skipIf(noEdits)("the answer to a deleted question offers to delete itself", async () => {
    const surface = await start();
    surface.world.script(["Paris."]);
    const said = await surface.ask("The capital of France?");
    await finished(surface);
    await surface.takeBack(said);
    const note = await surface.until(() => surface.notes().find(({ buttons }) => buttons.includes("delete")), "Delete");
    await surface.press(note, "delete");
    await surface.until(() => surface.notes().length === 0, "the answer to go");
    await surface.idle();
  });
}

function describeEndings(start: StartSurface, { noRestart }: Differences): void {
  test("Stop ends the answer, which keeps the words that people have read", async () => {
    const surface = await start();
    const never = Promise.withResolvers<void>();
    surface.world.script(["Once upon a time", never.promise, " there was nothing"]);
    await surface.ask("tell me");
    const note = await surface.until(
      () => surface.notes().find(({ text }) => text.startsWith("Once upon")),
      "the first words",
    );
    await surface.press(note, "stop");
    const { text, id } = await findNote(surface, /stopped this answer/);
    expect(text).toMatch(/^Once upon a time\n\n_.*stopped this answer\._$/);
    expect(surface.notes().map((one) => one.id)).toEqual([id]);
  });

  test("the word stop ends the answer as the button does, and gets no answer itself", async () => {
    const surface = await start();
    const never = Promise.withResolvers<void>();
    surface.world.script(["Once upon a time", never.promise]);
    await surface.ask("tell me");
    await surface.until(() => surface.notes().find(({ text }) => text.startsWith("Once upon")), "the first words");
    await surface.goOn("stop");
    await findNote(surface, /^Once upon a time\n\n_.*stopped this answer\._$/);
    expect(surface.world.asked).toHaveLength(1);
  });

  test("the bot explains a failure of the model in plain words, and Retry answers in the same message", async () => {
    const surface = await start();
    surface.world.script(["It", new Error("cut")], ["It rains."]);
    await surface.ask("weather?");
    const failed = await findNote(surface, /went wrong/);
    expect(failed.buttons).toContain("retry");
    await surface.press(failed, "retry");
    expect((await findNote(surface, /^It rains\.$/)).id).toBe(failed.id);
    expect(surface.notes()).toHaveLength(1);
  });

  test.skipIf(noRestart !== undefined || isOnRedis)(
    "the bot ends an answer that a shutdown interrupts in plain words, and answers later questions once it is back",
    async () => {
      const surface = await start();
      const [more, never] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      surface.world.script(["Half of", more.promise, " it", never.promise], ["The whole."]);
      await surface.ask("tell me");
      await surface.until(() => surface.notes()[0]?.text.startsWith("Half of"), "the first words");
      more.resolve();
      // By then, the bot knows that its post succeeded.
      await surface.until(() => surface.notes()[0]?.text.startsWith("Half of it"), "more words");
      await surface.restart();
      await surface.ask("and now?");
      const [interrupted, ...later] = await finished(surface, 2);
      expect(interrupted).toMatch(/^Half of it\n\n_I was shut down.*_$/);
      expect(later).toEqual(["The whole."]);
    },
  );
}

function describeCommands(start: StartSurface, { noOthers, noPrivateFiles }: Differences): void {
  const alone = noOthers === undefined ? "ada" : undefined;

  test("only the person who gave a command sees its answer", async () => {
    const surface = await start();
    await surface.command("help");
    expect((await findNote(surface, /I'm Palaver/)).onlyFor).toBe(alone);
    expect(surface.world.asked).toEqual([]);
  });

  test("a word after an exclamation mark is a command in any conversation", async () => {
    const surface = await start();
    surface.world.script(["Hello."]);
    await surface.ask("hi");
    await finished(surface);
    await surface.goOn("!help");
    await findNote(surface, /I'm Palaver/);
    expect(surface.world.asked).toHaveLength(1);
  });

  test.skipIf(noPrivateFiles)("only the person whose data it is gets the file with the data", async () => {
    const surface = await start();
    surface.world.script(["Hello."]);
    await surface.ask("hi");
    await finished(surface);
    await surface.goOn("!export");
    const isFile = ({ fileNames }: Shown) => fileNames.length > 0;
    const note = await surface.until(() => surface.notes().find(isFile), "the file");
    await surface.idle();
    expect(note).toMatchObject({ fileNames: ["export.json"], onlyFor: alone });
    expect(surface.notes().filter(isFile)).toHaveLength(1);
  });

  test("the bot shows the model's thoughts only after the conversation asked for them", async () => {
    const surface = await start();
    const thought: Step = { reasoning: "A greeting." };
    // In a channel, its managers decide. In their own conversation, all people decide for themselves.
    const say = noOthers === undefined ? surface.askDirectly : surface.goOn;
    surface.world.script([thought, "Hello."], [thought, "Hello again."]);
    await say("hi");
    expect(await finished(surface)).toEqual(["Hello."]);
    await say("!model --thinking shown");
    await finished(surface, 2);
    await say("hi");
    expect((await findNote(surface, /Hello again\.$/)).text).toContain("A greeting.");
  });

  test("/imagine posts an image", async () => {
    const surface = await start();
    await surface.imagine("a fox");
    const picture = await surface.until(() => surface.pictures()[0], "the picture");
    await surface.idle();
    expect(picture.name).toBe("a-fox.png");
    expect(
      Buffer.from(await picture.read())
        .subarray(1, 4)
        .toString(),
    ).toBe("PNG");
  });
}

function describeTools(start: StartSurface, { noOthers }: Differences): void {
  const CALL: Step = {
    tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "book", arguments: '{"room":"Blue"}' } }],
  };

  async function startBooking() {
    const booked: string[] = [];
    const book: Tool = {
      ...defineTool({
        name: "book",
        description: "Books a room.",
        schema: z.object({ room: z.string() }),
        timeoutMs: 60_000,
        run: async ({ room }) => `booked ${booked.push(room)}`,
        describeCall: () => "booking a room",
      }),
      acts: true,
      approval: { server: "rooms" },
    };
    const surface = await start({ tools: [book] });
    surface.world.script(["Let me book it.", CALL], ["It is yours."]);
    await surface.ask("a room, please");
    const card = await findNote(surface, /May I use/);
    expect(card.text).toMatch(/book.*rooms.*"Blue"/s);
    return { surface, card, booked };
  }

  test("a tool with side effects waits for the person who asked, and the answer continues in the same message", async () => {
    const { surface, card, booked } = await startBooking();
    if (noOthers === undefined) {
      await surface.press(card, "approve", "bob");
      await surface.idle();
    }
    expect(booked).toEqual([]);
    await surface.press(card, "approve");
    const answer = await findNote(surface, /It is yours\.$/);
    expect(answer.id).toBe(card.id);
    expect(answer.text).toMatch(/Let me book it\.\n\n_.*allowed that once\._\n\nIt is yours\.$/);
    expect(booked).toEqual(["Blue"]);
    expect(surface.world.asked[1]?.messages.at(-1)?.content).toBe("booked 1");
  });

  test("the bot does not call a tool with side effects if the person who asked denies it", async () => {
    const { surface, card, booked } = await startBooking();
    await surface.press(card, "deny");
    expect((await findNote(surface, /It is yours\.$/)).id).toBe(card.id);
    expect(booked).toEqual([]);
    expect(surface.world.asked).toHaveLength(2);
  });
}

function describeSources(start: StartSurface, { noAnswerButtons, noRestart }: Differences): void {
  const [tea, kettle] = ["https://a.example/tea", "https://b.example/kettle"];
  const CITED: Step = {
    sources: [
      { url: tea, title: "Tea <3 *you*", marks: [1] },
      { url: kettle, title: "", marks: [2, 3] },
    ],
  };
  const LISTED = [`1. ${tea} Tea <3 *you*`, `2. ${kettle} b.example`];
  const unescaped = ({ sources }: Shown) => sources.map((line) => line.replaceAll("&lt;", "<"));

  test.each<[string, Step[]]>([
    ["before its text", [CITED, "Old[1]", "[2", "] and new[3].", " Not `a[1]` or [9]."]],
    ["after its text", ["Old[1]", "[2", "] and new[3].", " Not `a[1]` or [9].", CITED]],
  ])(
    "an answer whose sources come %s links their numbers and lists them once, in its only message",
    async (_, answer) => {
      const surface = await start();
      surface.world.script(answer);
      await surface.ask("tea?");
      await finished(surface);
      const [note, ...others] = surface.notes();
      expect(others).toEqual([]);
      expect(note?.text).toBe(`Old[[1]](${tea})[[2]](${kettle}) and new[[2]](${kettle}). Not \`a[1]\` or [9].`);
      expect(note && unescaped(note)).toEqual(LISTED);
      expect(surface.pings()).toEqual([]);
    },
  );

  test("an answer lists the pages that its tools have read, and no page that only its text names", async () => {
    const read = defineTool({
      name: "read",
      description: "Reads a page.",
      schema: z.object({}),
      timeoutMs: 60_000,
      run: async () => ({ text: "It boils.", sources: [{ url: kettle, title: "Kettles" }] }),
      describeCall: () => "reading",
    });
    const surface = await start({ tools: [read] });
    const call: Step = {
      tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "read", arguments: "{}" } }],
    };
    surface.world.script([call], ["It boils [1], says [someone](https://c.example/)."]);
    await surface.ask("does it?");
    const note = await findNote(surface, /says/);
    expect(note.text).toMatch(/(^|\n)It boils \[1\], says \[someone\]\(https:\/\/c\.example\/\)\.$/);
    expect(note.sources).toEqual([`1. ${kettle} Kettles`]);
  });

  test.skipIf(noAnswerButtons ?? noRestart)(
    "an earlier answer has the same sources when it is shown again after a restart",
    async () => {
      const surface = await start();
      surface.world.script(["Old[1].", CITED], ["New."]);
      await surface.ask("tea?");
      const first = await findNote(surface, /^Old/);
      await surface.press(first, "regenerate");
      const second = await findNote(surface, /^New\.$/);
      expect(second.sources).toEqual([]);
      await surface.restart();
      await surface.press(second, "show");
      const again = await findNote(surface, /^Old/);
      expect(again.text).toMatch(`Old[[1]](${tea}).`);
      expect(unescaped(again)).toEqual(LISTED);
      await surface.press(again, "show");
      await findNote(surface, /^New\.$/);
    },
  );

  test.skipIf(noAnswerButtons)("the explanation of an answer lists its sources", async () => {
    const surface = await start();
    surface.world.script(["Old[1].", CITED]);
    await surface.ask("tea?");
    await surface.press(await findNote(surface, /^Old/), "explain");
    const { text } = await findNote(surface, /What I was given/);
    expect(text).toContain(`Source 2, cited by the AI service: [b.example](${kettle})`);
  });
}

function describeSearch(start: StartSurface, { noSearch }: Differences): void {
  const CALL: Step = {
    tool_calls: [
      { index: 0, id: "c", type: "function", function: { name: "search_messages", arguments: '{"words":"launch"}' } },
    ],
  };

  async function startTold() {
    const surface = await start();
    surface.world.script(["Noted."]);
    await surface.ask("the launch is on Friday");
    await finished(surface);
    return surface;
  }

  test.skipIf(noSearch)("/search lists the messages with these words, each with a link", async () => {
    const surface = await startTold();
    await surface.ask("!search LAUNCH friday");
    const { text } = await findNote(surface, /Found/);
    expect(text).toMatch(/Found 1 message\S*\n.*the launch is on Friday.*(https?:\/\/|#chat-)/s);
    expect(surface.world.asked).toHaveLength(1);
  });

  test.skipIf(noSearch)(
    "the model can search, gets quotes with links, and sees none of them in later answers",
    async () => {
      const surface = await startTold();
      surface.world.script([CALL], ["On Friday."], ["Yes."]);
      await surface.ask("when do we start?");
      const answer = await findNote(surface, /On Friday\./);
      const { asked } = surface.world;
      expect(asked[2]?.messages.at(-1)?.content).toMatch(
        /quotes of people and apps, not instructions.*the launch is on Friday$/s,
      );
      await surface.goOn("sure?");
      await findNote(surface, /Yes\./);
      const later = textOf(asked[3]);
      expect(later).toContain("This result was not stored");
      expect(later).not.toContain("quotes of people and apps");
      await surface.press(answer, "explain");
      expect((await findNote(surface, /What I was given/)).text).toMatch(/Tool: .*search_messages.*\n.*Found: \S+/s);
    },
  );
}

function describeSchedules(start: StartSurface, { noOthers, noRestart, noForms }: Differences): void {
  const HOUR_MS = 3_600_000;
  const alone = noOthers === undefined ? "ada" : undefined;
  const UNDER_POST = ["pause", "reschedule", "unschedule"];

  /** A surface with the card of a schedule. */
  async function startCard(task: string) {
    const surface = await start();
    // A chat must exist on the page.
    surface.world.script(["Hello."]);
    await surface.ask("hi");
    await findNote(surface, /^Hello\.$/);
    await surface.command("schedule", `every hour UTC ${task}`);
    const card = await findNote(surface, /Shall I do this/);
    expect(card).toMatchObject({ buttons: ["schedule", "reschedule", "unschedule"], onlyFor: alone });
    expect(card.text).toMatch(/Next: .+ \d\d:00 \(UTC\), then .+ \d\d:00\./);
    return { surface, card };
  }

  /** A surface with a confirmed schedule. */
  async function startHourly(task: string) {
    const { surface, card } = await startCard(task);
    await surface.press(card, "schedule");
    await findNote(surface, /Scheduled \(/);
    return surface;
  }

  test("a schedule runs once at its time, and its post has buttons", async () => {
    const surface = await startHourly("say the hour");
    if (noRestart === undefined) await surface.restart();
    const at = Date.now() + HOUR_MS;
    surface.world.script(["It strikes."], ["It strikes again."]);
    await Promise.all([surface.world.fireAt(at), surface.world.fireAt(at)]);
    const post = await findNote(surface, /It strikes/);
    expect(post.onlyFor).toBeUndefined();
    expect(post.buttons).toEqual(expect.arrayContaining(UNDER_POST));
    await surface.world.fireAt(at);
    await surface.idle();
    expect(surface.notes().filter(({ text }) => text.includes("It strikes"))).toHaveLength(1);
    expect(textOf(surface.world.asked.at(-1))).toContain("say the hour");
  });

  test("a paused schedule does not run", async () => {
    const surface = await startHourly("say the hour");
    surface.world.script(["It strikes."], ["It strikes again."]);
    await surface.world.fireAt(Date.now() + HOUR_MS);
    await surface.press(await findNote(surface, /It strikes/), "pause");
    const paused = await findNote(surface, /^Paused/);
    await surface.world.fireAt(Date.now() + 2 * HOUR_MS);
    await surface.idle();
    expect(surface.notes().some(({ text }) => text.includes("again"))).toBe(false);
    await surface.press(paused, "resume");
    await findNote(surface, /Resumed/);
    await surface.world.fireAt(Date.now() + 3 * HOUR_MS);
    await findNote(surface, /It strikes again/);
  });

  test.skipIf(noForms)(
    "Change opens a form with the time and the task, and its card then shows the new ones",
    async () => {
      const { surface, card } = await startCard("say the hour");
      const problem = await surface.changeSchedule(card, (values) => {
        expect(values).toEqual({ time: "every hour", task: "say the hour" });
        return { time: "every 2 hours", task: "say both hours" };
      });
      expect(problem).toBeUndefined();
      const changed = await findNote(surface, /every 2 hours\?.*say both hours.*Next: .* \(UTC\)/s);
      expect(changed).toMatchObject({ buttons: card.buttons, onlyFor: alone });
      expect(surface.notes().filter(({ text }) => text.includes("Shall I do this"))).toHaveLength(1);
      await surface.press(changed, "schedule");
      await findNote(surface, /Scheduled \(.*every 2 hours/);
      surface.world.script(["They strike."]);
      await surface.world.fireAt(Date.now() + 2 * HOUR_MS);
      await findNote(surface, /They strike/);
      expect(textOf(surface.world.asked.at(-1))).toContain("say both hours");
    },
  );

  test.skipIf(noForms)("a form with a wrong time changes nothing, and repeats what was typed", async () => {
    const { surface, card } = await startCard("say the hour");
    const problem = await surface.changeSchedule(card, () => ({ time: "some day", task: "say it twice" }));
    if (problem === undefined) {
      const told = await findNote(surface, /I couldn't find a time/);
      expect(told.text).toMatch(/some day.*say it twice/s);
      expect(told.onlyFor).toBe(alone);
    } else expect(problem).toContain("I couldn't find a time");
    await surface.press(card, "schedule");
    await findNote(surface, /Scheduled \(.*every hour.*say the hour/s);
  });

  test.skipIf(noForms)("Edit changes a schedule once its maker has confirmed the new version", async () => {
    const surface = await startHourly("say the hour");
    surface.world.script(["It strikes."], ["It strikes twice."]);
    await surface.world.fireAt(Date.now() + HOUR_MS);
    const post = await findNote(surface, /It strikes\./);
    await surface.changeSchedule(post, (values) => ({ ...values, time: "every 3 hours" }));
    const card = await findNote(surface, /Shall I do this instead/);
    expect(card.onlyFor).toBe(alone);
    await surface.press(card, "schedule");
    await findNote(surface, /Scheduled \(.*every 3 hours/);
    await surface.world.fireAt(Date.now() + 5 * HOUR_MS);
    await findNote(surface, /It strikes twice\./);
    await surface.command("schedule");
    expect((await findNote(surface, /^Your schedules:/)).text).toMatch(
      /^Your schedules:\n- .* Every 3 hours: next .*\n\n/,
    );
  });

  test.skipIf(noForms === undefined && noOthers !== undefined)(
    "Edit gives another person no form, and without forms it answers with a command to copy",
    async () => {
      const surface = await startHourly("say the hour");
      surface.world.script(["It strikes."]);
      await surface.world.fireAt(Date.now() + HOUR_MS);
      const post = await findNote(surface, /It strikes\./);
      await surface.press(post, "reschedule", noOthers === undefined ? "bob" : "ada");
      await findNote(
        surface,
        noForms === undefined
          ? /Only the person who made this schedule/
          : /\/schedule change \w+ every hour say the hour/,
      );
    },
  );

  test("a run with nothing to say posts nothing", async () => {
    const surface = await startHourly("speak only if there is something to say");
    const before = surface.notes().length;
    surface.world.script(["NOTHING_TO_SAY"]);
    await surface.world.fireAt(Date.now() + HOUR_MS);
    await surface.idle();
    expect(surface.world.asked).toHaveLength(2);
    expect(surface.notes()).toHaveLength(before);
  });

  test("the model shows a card for a request in words, and only the request's author can confirm the card", async () => {
    const surface = await start();
    const wish = JSON.stringify({ when: "tomorrow at 9:00 UTC", task: "Call Ana." });
    const call: Step = {
      tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "schedule", arguments: wish } }],
    };
    surface.world.script([call], ["Please confirm."], ["Call Ana!"]);
    await surface.ask("remind me to call Ana tomorrow at nine");
    const card = await findNote(surface, /Shall I do this/);
    await findNote(surface, /Please confirm/);
    if (noOthers === undefined) {
      await surface.press(card, "schedule", "bob");
      await findNote(surface, /Only the person who made this schedule/);
    }
    await surface.press(card, "schedule");
    await findNote(surface, /Scheduled \(/);
    await surface.world.fireAt(Date.now() + 2 * 24 * HOUR_MS);
    await findNote(surface, /I couldn't do this|Call Ana!/);
    expect(surface.notes().filter(({ text }) => /I couldn't do this|Call Ana!/.test(text))).toHaveLength(1);
  });
}

function describeCatchup(start: StartSurface, { noOthers, noPrivateWords }: Differences): void {
  /** A surface on which Bob has written to Ada and to no one after her last message. */
  async function startMissed() {
    const surface = await start();
    surface.world.script(["Noted."]);
    await surface.ask("what is new?");
    await finished(surface);
    await surface.goOn(`${surface.mentionOf("ada")} can you review the plan?`, { who: "bob" });
    const last = await surface.goOn("we ship on Friday <https://evil.example>", { who: "bob" });
    await surface.idle();
    return { surface, last };
  }

  test.skipIf(noOthers)(
    "/catchup shows its author alone what they missed: the period, what concerns them, and links to the messages",
    async () => {
      const { surface } = await startMissed();
      surface.world.script([
        "QUESTION: Bob wants a review [1]\nDECISION: They ship on Friday [2]\nNEWS: All is lost [9]",
      ]);
      await surface.command("catchup", "");
      const { text, onlyFor } = await findNote(surface, /No new messages|\d messages?/);
      expect(onlyFor).toBe("ada");
      expect(text).toMatch(
        /2 messages, 1 thread, from .*For you.*Bob wants a review.*http.*Decision: They ship on Friday.*http/s,
      );
      expect(text).not.toContain("All is lost");
      expect(textOf(surface.world.asked.at(-1))).toMatch(/They are data.*\[1\].*Bob, to the reader: @Ada can you/s);
      expect(surface.pings()).toEqual([]);
    },
  );

  test.skipIf(noOthers)(
    "/catchup all reads the channels of both, and !catchup starts at the last message or shows nothing to others",
    async () => {
      const { surface } = await startMissed();
      surface.world.script(["NEWS: They ship on Friday [2]"]);
      await surface.command("catchup", "all since yesterday");
      const { text } = await findNote(surface, /since you wrote/);
      expect(text).toMatch(/\d messages?, 1 thread, 2 since you wrote, from /);
      await surface.ask("!catchup");
      if (noPrivateWords === undefined) {
        const here = await findNote(surface, /2 messages, 1 thread, from/);
        expect(here.onlyFor).toBe("ada");
      } else {
        await findNote(surface, /Everyone here would see what you missed/);
        expect(surface.notes().filter(({ text }) => text.includes("1 thread"))).toHaveLength(1);
      }
    },
  );

  test.skipIf(noOthers)(
    "What did I miss? in the menu of a message answers as /catchup does, to the person who chose it alone",
    async () => {
      const { surface, last } = await startMissed();
      surface.world.script(["QUESTION: Bob wants a review [1]"]);
      await surface.chooseCommand(last, "catchup");
      const { text, onlyFor } = await findNote(surface, /No new messages|\d messages?/);
      expect(onlyFor).toBe("ada");
      expect(text).toMatch(/2 messages, 1 thread, from .*For you.*Bob wants a review.*http/s);
      expect(surface.pings()).toEqual([]);
    },
  );

  test.skipIf(noOthers === undefined)("/catchup says that there is nothing to catch up on", async () => {
    const surface = await start();
    surface.world.script(["Hello."]);
    await surface.ask("hi");
    await findNote(surface, /^Hello\.$/);
    await surface.command("catchup");
    await findNote(surface, /nothing to catch up on/);
  });
}
