import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ada, ben, command } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import type { Author } from "../../src/port/events.ts";

const HOUR_MS = 3_600_000;
const ZONED: Author = { ...ada, timeZone: "Europe/Berlin" };

/** A bot with the people of a channel, and a policy that can change. */
function start(scripts: Parameters<typeof startEngine>[0] = {}) {
  const platform = fakePlatform();
  const people = new Map<string, Author>([
    ["ada", ada],
    ["ben", ben],
  ]);
  const state: { policy: Policy } = { policy: {} };
  const engine = startEngine({
    platform,
    adapterOf: () => ({
      ...platform.adapter,
      findAuthor: async (id) => people.get(id),
      isThere: async (id) => people.has(id),
    }),
    policy: () => state.policy,
    scripts: [["Done."], ["Done again."], ["And again."], ["And again."]],
    ...scripts,
  });
  async function say(name: string, text: string, author = ZONED): Promise<string> {
    await engine.handle(command(name, text, { author }));
    return engine.texts().at(-1) ?? "";
  }
  async function press(name: Parameters<typeof action>[0], author = ZONED): Promise<string> {
    const shown = engine.channel.findLast(({ draft }) => draft.buttons.some((button) => button.action === name));
    const { turnId = "" } = shown?.draft.buttons.find((button) => button.action === name) ?? {};
    await engine.handle(action(name, turnId, { author }));
    return engine.texts().join("\n");
  }
  /** Adds a schedule that runs every hour. */
  async function schedule(): Promise<void> {
    await say("schedule", "every hour say the hour");
    await press("schedule");
  }
  /** The clock shows this many hours after the last full one, and a second more. */
  async function fire(hours: number): Promise<string> {
    await engine.fireAt(Math.floor(Date.now() / HOUR_MS) * HOUR_MS + hours * HOUR_MS + 1_000);
    await engine.idle();
    return engine.texts().at(-1) ?? "";
  }
  return { ...engine, people, state, say, press, schedule, fire };
}

describe("a scheduled run", () => {
  test("a run tells the model when it was scheduled for, and to keep silent if nothing is to say", async () => {
    const bot = start();
    await bot.schedule();
    await bot.fire(1);
    expect(bot.texts().at(-1)).toBe("Done.");
    const [system] = bot.requests.at(-1)?.messages ?? [];
    expect(JSON.stringify(system)).toMatch(/it is now \w+ \d+ \w+ \d\d:00 \(Europe\/Berlin\).*NOTHING_TO_SAY/s);
  });

  test("a run that is made up for says so", async () => {
    const bot = start();
    await bot.schedule();
    expect(await bot.fire(1.9)).toMatch(
      /^Done\.\n\n_This was due .*:00 \(Europe\/Berlin\)\. I couldn't do it then\._$/,
    );
  });

  test("a schedule ends and says so once when its maker has left", async () => {
    const bot = start();
    await bot.schedule();
    bot.people.delete("ada");
    expect(await bot.fire(1)).toMatch(/^I stopped this schedule, because `Ada` and I are no longer both here/);
    const { length } = bot.channel;
    await bot.fire(2);
    expect(bot.channel).toHaveLength(length);
    expect(bot.requests).toEqual([]);
    expect(await bot.schedules.list()).toMatchObject([{ state: "ended", why: "`Ada` and I are no longer both here" }]);
  });

  test.each(["chat", "tool:schedule"] as const)(
    "a schedule ends when its maker may no longer use %s",
    async (permission) => {
      const bot = start();
      await bot.schedule();
      bot.state.policy = { access: { rules: [{ deny: permission, to: "person:ada" }] } };
      expect(await bot.fire(1)).toMatch(/^I stopped this schedule, because `Ada` is no longer allowed to do this/);
      expect(bot.requests).toEqual([]);
    },
  );

  test("a run has the roles that its maker has at that moment", async () => {
    const bot = start();
    bot.state.policy = { access: { rules: [{ allow: "chat", to: "role:7" }, { deny: "chat" }] } };
    bot.people.set("ada", { ...ada, groups: ["7"] });
    await bot.say("schedule", "every hour say the hour", { ...ZONED, groups: ["7"] });
    await bot.press("schedule", { ...ZONED, groups: ["7"] });
    expect(await bot.fire(1)).toBe("Done.");
    bot.people.set("ada", ada);
    expect(await bot.fire(2)).toMatch(/^I stopped this schedule/);
  });

  test("a used-up quota skips runs, says so once, and pauses the schedule in the end", async () => {
    const bot = start();
    await bot.schedule();
    bot.state.policy = { quotas: { person: { day: { requests: 1 } } } };
    await bot.fire(1);
    const told = await bot.fire(2);
    expect(told).not.toContain("again");
    const { length } = bot.channel;
    await bot.fire(3);
    expect(bot.channel).toHaveLength(length);
    expect(await bot.fire(4)).toMatch(/^I paused this schedule after 3 failed runs/);
    expect(bot.requests).toHaveLength(1);
  });

  test("a failing model pauses the schedule after three runs", async () => {
    const bot = start({ scripts: [[new Error("cut")], [new Error("cut")], [new Error("cut")]] });
    await bot.schedule();
    for (const hours of [1, 2, 3]) await bot.fire(hours);
    expect(bot.texts().at(-1)).toMatch(/^I paused this schedule after 3 failed runs/);
    expect(await bot.schedules.list()).toMatchObject([{ state: "paused", failures: 3 }]);
  });

  test("a run that was deleted after it became due does nothing", async () => {
    const bot = start();
    await bot.schedule();
    await bot.press("unschedule");
    await bot.fire(1);
    expect(bot.requests).toEqual([]);
    expect(await bot.schedules.list()).toEqual([]);
  });

  test("a single run posts once, and its schedule is gone then", async () => {
    const bot = start();
    await bot.say("schedule", "in 5 hours call Ana");
    await bot.press("schedule");
    expect(await bot.fire(6)).toMatch(/^Done\./);
    await bot.fire(7);
    expect(bot.requests).toHaveLength(1);
    expect(await bot.schedules.list()).toEqual([]);
  });

  test("a single run that is half a day late is not done, and the person is told", async () => {
    const bot = start();
    await bot.say("schedule", "in 1 hour call Ana");
    await bot.press("schedule");
    expect(await bot.fire(15)).toMatch(/^I couldn't do this in time: `call Ana` was due/);
    expect(bot.requests).toEqual([]);
    expect(await bot.schedules.list()).toEqual([]);
  });
});

describe("/schedule", () => {
  test("nothing is scheduled before the card is confirmed", async () => {
    const bot = start();
    expect(await bot.say("schedule", "every hour say the hour")).toMatch(/^\*\*Shall I do this in this channel/);
    await bot.fire(1);
    expect(bot.requests).toEqual([]);
    expect(await bot.press("unschedule")).toContain("Cancelled: nothing is scheduled.");
    expect(await bot.say("schedule", "")).toMatch(/^You have no schedules/);
  });

  test("a person without a time zone is asked for it once", async () => {
    const bot = start();
    expect(await bot.say("schedule", "weekdays at 9:00 hello", ben)).toMatch(/^In which time zone\?/);
    expect(await bot.say("schedule", "weekdays at 9:00 Asia/Tokyo hello", ben)).toContain("(Asia/Tokyo)");
    await bot.press("schedule", ben);
    expect(await bot.say("schedule", "weekdays at 9:00 hello", ben)).toContain("(Asia/Tokyo)");
  });

  test("the channel's time zone counts for people without one", async () => {
    const bot = start();
    await bot.say("timezone", "America/New_York");
    expect(await bot.say("schedule", "weekdays at 9:00 hello", ben)).toContain("(America/New_York)");
    expect(await bot.say("schedule", "weekdays at 9:00 hello")).toContain("(Europe/Berlin)");
  });

  test("a card that changes a schedule does not bring a deleted one back", async () => {
    const bot = start();
    await bot.schedule();
    const id = (await bot.schedules.list())[0]?.id ?? "";
    await bot.say("schedule", `change ${id} every hour say it twice`);
    await bot.say("schedule", `delete ${id}`);
    expect(await bot.press("schedule")).toContain("This schedule no longer exists.");
    expect(await bot.schedules.list()).toEqual([]);
  });

  test("a person sees their own schedules, and an admin sees and deletes all", async () => {
    const bot = start();
    await bot.schedule();
    expect(await bot.say("schedule", "", ben)).toMatch(/^You have no schedules/);
    const id = (await bot.schedules.list())[0]?.id ?? "";
    expect(await bot.say("schedule", `delete ${id}`, ben)).toMatch(/^Only the person who made this schedule/);
    bot.state.policy = { access: { admins: ["person:ben"] } };
    expect(await bot.say("schedule", "list", ben)).toMatch(
      /^All schedules:\n- `\w+` by Ada: Every hour: next (?!.*say the hour)/s,
    );
    expect(await bot.say("schedule", `delete ${id}`, ben)).toMatch(/^Deleted/);
    expect((await bot.audit.read(9)).map(({ what, name }) => `${what} ${name}`)).toEqual([
      "schedule Ben",
      "schedule Ada",
    ]);
  });

  test("the buttons of a schedule do nothing for others", async () => {
    const bot = start();
    await bot.say("schedule", "every hour say the hour");
    for (const name of ["schedule", "reschedule", "unschedule"] as const) {
      expect(await bot.press(name, ben)).toMatch(/Only the person who made this schedule, a moderator or an admin/);
    }
    expect(await bot.press("schedule", { ...ben, isModerator: true })).toContain("Only the person who made");
    await bot.press("schedule");
    for (const name of ["pause", "reschedule", "unschedule"] as const) await bot.press(name, ben);
    expect(await bot.schedules.list()).toMatchObject([{ state: "active" }]);
    await bot.press("pause", { ...ben, isModerator: true });
    expect(await bot.schedules.list()).toMatchObject([{ state: "paused" }]);
  });

  test("a schedule's form is for its maker and managers, and a manager who changes it becomes its maker", async () => {
    const bot = start();
    await bot.schedule();
    const id = (await bot.schedules.list())[0]?.id ?? "";
    const fields = { time: "every 2 hours", task: "say it twice" };
    const boss: Author = { ...ben, isModerator: true };
    const change = async (author: Author) => {
      await bot.handle({ ...action("reschedule", id, { author }), fields });
    };
    expect(await bot.scheduleForm.read(id, action("reschedule", id, { author: ben }))).toBeUndefined();
    await change(ben);
    expect(bot.texts().at(-1)).toMatch(/^Only the person who made this schedule/);
    const opened = await bot.scheduleForm.read(id, action("reschedule", id, { author: boss }));
    expect(opened).toEqual({ time: "every hour", task: "say the hour" });
    await change(boss);
    expect(bot.texts().at(-1)).toMatch(/instead.*every 2 hours.*This makes it your schedule/s);
    await bot.press("schedule", ZONED);
    expect(await bot.schedules.list()).toMatchObject([{ id, author: { id: "ada" }, task: "say the hour" }]);
    await bot.press("schedule", boss);
    expect(await bot.schedules.list()).toMatchObject([{ id, author: { id: "ben" }, task: "say it twice" }]);
  });

  test("the form of a single run starts from its date, and only whole times are understood", async () => {
    const bot = start();
    await bot.say("schedule", "tomorrow 14:00 call Ana");
    const [button] = bot.channel.at(-1)?.draft.buttons ?? [];
    const press = action("reschedule", button?.turnId ?? "", { author: ZONED });
    const opened = (await bot.scheduleForm.read(press.turnId, press)) ?? { time: "", task: "" };
    expect(opened.time).toMatch(/^\w{3} \d+ \w+( \d{4})? 14:00$/);
    const find = (fields: Partial<typeof opened>) =>
      bot.scheduleForm.findProblems(press.turnId, { ...opened, ...fields }, press);
    expect(await find({})).toEqual({});
    expect(await find({ time: "weekdays at 9:00 sharp" })).toEqual({
      time: "I understood only `weekdays at 9:00`. Leave out the rest, or write it into the task.",
    });
    expect(await find({ task: " " })).toEqual({ task: "I understood when, but not what to do then. Write both." });
    expect(await find({ task: "x".repeat(3_001) })).toEqual({ task: "The task can have at most 3000 characters." });
  });

  test("a person can have only twenty schedules, and an ended one counts again when it resumes", async () => {
    const bot = start();
    await bot.schedule();
    const [ended] = await bot.schedules.list();
    await bot.schedules.change(ended?.id ?? "", (one) => one && { ...one, state: "ended" });
    for (let count = 0; count <= 20; count++) {
      await bot.say("schedule", `every hour number ${count}`);
      await bot.press("schedule");
    }
    expect(await bot.schedules.list()).toHaveLength(21);
    expect(bot.texts().join("\n")).toContain("You have 20 schedules");
    expect(await bot.say("schedule", `resume ${ended?.id}`)).toContain("You have 20 schedules");
  });

  test("/export contains schedules, and /forget erases them", async () => {
    const bot = start();
    await bot.schedule();
    await bot.say("export", "");
    const [file] = bot.channel.flatMap(({ files }) => files);
    expect(new TextDecoder().decode(file?.bytes)).toContain("say the hour");
    await bot.say("forget", "me for good");
    expect(await bot.schedules.list()).toEqual([]);
    await bot.fire(1);
    expect(bot.requests).toEqual([]);
  });
});
