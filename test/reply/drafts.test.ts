import { describe, expect, test } from "vitest";
import type { Step } from "../../src/port/sink.ts";
import { createReplyDrafts, type Sealed } from "../../src/reply/drafts.ts";

const limits = { maxLength: 200, lengthOf: (text: string) => text.length, maxFileBytes: 1 };
const retry = { action: "retry" as const, turnId: "turn", label: "Retry" };

function open() {
  return createReplyDrafts({ turnId: "turn", limits });
}

describe("steps in reply drafts", () => {
  const running: Step = { id: "1.0", title: "looking", state: "running" };
  const done: Step = { ...running, state: "done" };
  const stepsOf = (steps: () => readonly Step[] | undefined) => {
    const drafts = createReplyDrafts({ turnId: "turn", limits, steps });
    return { drafts, shown: () => drafts.render().map((draft) => draft.steps) };
  };

  test("stand in the last message while they go on, and where they were when they have ended", () => {
    let steps = [running];
    const { drafts, shown } = stepsOf(() => steps);
    expect(shown()).toEqual([]);
    drafts.append("word ".repeat(20));
    expect(shown()).toEqual([[running]]);
    drafts.append("word ".repeat(30));
    expect(shown()).toEqual([undefined, [running]]);
    steps = [done];
    drafts.append("word ".repeat(40));
    expect(shown()).toEqual([undefined, [done], undefined]);
  });

  test("stay as they were shown where none are shown any more, so that nothing is written for their sake", () => {
    let steps: readonly Step[] | undefined = [running];
    const { drafts, shown } = stepsOf(() => steps);
    drafts.append("word");
    expect(shown()).toEqual([[running]]);
    steps = undefined;
    expect(shown()).toEqual([[running]]);
  });
});

describe("reply drafts", () => {
  test("grow with a Stop button under the last message, healed", () => {
    const drafts = open();
    drafts.append(`${"word ".repeat(50)}**bold`);
    const shown = drafts.render();
    expect(shown.length).toBeGreaterThan(1);
    expect(shown.at(-1)).toMatchObject({ streaming: true, buttons: [{ action: "stop", turnId: "turn" }] });
    expect(shown.at(-1)?.markdown).toMatch(/\*\*bold\*\*$/);
    expect(shown.slice(0, -1).every(({ streaming, buttons }) => !streaming && buttons.length === 0)).toBe(true);
  });

  test("end with the words of the model as they are", () => {
    const drafts = open();
    drafts.append("2*3 and `half\n");
    drafts.end({ note: "", buttons: [] });
    expect(drafts.render()).toEqual([{ markdown: "2*3 and `half", buttons: [], streaming: false }]);
  });

  test.each([
    ["```js\nconst a = 1;", "```js\nconst a = 1;\n```"],
    ["- item\n\n  ~~~\n  code\n", "- item\n\n  ~~~\n  code\n  ~~~"],
    ["```js\ndone();\n```", "```js\ndone();\n```"],
    ["2*3 and `half", "2*3 and `half"],
  ])("close code that broke off before what stands under it, and nothing else: %j", (text, closed) => {
    const drafts = open();
    drafts.append(text);
    drafts.end({ note: "_Interrupted._", buttons: [retry] });
    expect(drafts.render()).toEqual([{ markdown: `${closed}\n\n_Interrupted._`, buttons: [retry], streaming: false }]);
  });

  test.each([
    ["Some **bold words*", "Some **bold words**"],
    ["Some **", "Some"],
    ["Some `co", "Some `co`"],
    ["See [the page](https://exam", "See the page"],
    ["2*3 is six", "2*3 is six"],
    ["```js\nconst a = 1;", "```js\nconst a = 1;\n```"],
  ])("close what a text that broke off left open, and leave out what had only begun: %j", (text, closed) => {
    const drafts = open();
    drafts.append(text);
    drafts.end({ note: "_Stopped._", buttons: [retry], isPartial: true });
    expect(drafts.render()).toEqual([{ markdown: `${closed}\n\n_Stopped._`, buttons: [retry], streaming: false }]);
  });

  test("show the refusal in the place of a text that is not taken", () => {
    const drafts = open();
    drafts.append("word ".repeat(60));
    drafts.reject(1, { note: "_Not taken._", buttons: [retry] });
    const shown = drafts.render();
    expect(drafts.isOver).toBe(true);
    expect(shown).toHaveLength(2);
    expect(shown[1]).toEqual({ markdown: "_Not taken._", buttons: [retry], streaming: false });
  });

  test.each([
    ["Look: **here", ["Look: **here**\n\n_Not taken._"]],
    ["x".repeat(170), ["x".repeat(170), `_${"Not taken. ".repeat(3)}_`]],
  ])("show the refusal under the text that people have read, or behind it where it does not fit: %j", (read, texts) => {
    const drafts = open();
    drafts.append(read);
    const [shown] = drafts.render();
    drafts.append(" and more");
    drafts.reject(0, { note: texts[1] ?? "_Not taken._", buttons: [retry] }, shown);
    const ended = drafts.render();
    expect(ended.map(({ markdown }) => markdown)).toEqual(texts);
    expect(ended.map(({ buttons }) => buttons)).toEqual([...texts.slice(1).map(() => []), [retry]]);
    expect(ended.every((draft) => !draft.streaming && draft.source === undefined)).toBe(true);
  });

  test("show the refusal in the place of a wait", () => {
    const drafts = open();
    drafts.wait("_Waiting …_");
    const [waiting] = drafts.render();
    drafts.append("word");
    drafts.reject(0, { note: "_Not taken._", buttons: [] }, waiting);
    expect(drafts.render()).toEqual([{ markdown: "_Not taken._", buttons: [], streaming: false }]);
  });
});

test("while code grows, the source of a draft leaves its fence open, so that the next one only adds to it", () => {
  const drafts = open();
  let before = "";
  for (const more of ["Look:\n\n```ts\nco", "nst a = 1;\nlet", " b;\n", "``", "`\n\nDone."]) {
    drafts.append(more);
    const [draft] = drafts.render();
    expect(draft?.source?.startsWith(before)).toBe(true);
    before = draft?.source ?? "";
  }
  expect(before).toBe("Look:\n\n```ts\nconst a = 1;\nlet b;\n```\n\nDone.");
});

describe("the messages that take no changes any more", () => {
  function grow(text: string, sealed?: Sealed) {
    const drafts = createReplyDrafts({ turnId: "turn", limits, sealed });
    drafts.append(text);
    return drafts;
  }

  test.each([
    ["One, two", ""],
    ["One, **two", ""],
    ["One, two\n\n- ", "\n\n- "],
    ["ha ha ha ha ha ha", ""],
    ["```ts\nconst a = 1;\nconst b", ""],
  ])("show of %j all but %j", (text, rest) => {
    const drafts = grow(text);
    const [draft] = drafts.render();
    if (draft === undefined) throw new Error("There is no draft.");
    const { shown } = drafts.seal(1, draft, "all");
    expect(text.slice(shown)).toBe(rest);
  });

  test("are followed by what would have stood in the next one, also inside code", () => {
    const text = `\`\`\`ts\n${"const a = 1;\n".repeat(30)}const b = 2;`;
    const all = grow(text).render();
    expect(all.length).toBeGreaterThan(2);
    for (const index of all.keys()) {
      const drafts = grow(text);
      const draft = drafts.render()[index];
      if (draft === undefined) throw new Error("There is no such draft.");
      drafts.seal(index + 1, draft, "all");
      expect(drafts.render().map(({ markdown }) => markdown)).toEqual(
        all.slice(index + 1).map(({ markdown }) => markdown),
      );
    }
  });

  test("are followed by the rest of the same text, and by all of another one", () => {
    const before = grow("One");
    const [draft] = before.render();
    if (draft === undefined) throw new Error("There is no draft.");
    const sealed = before.seal(1, draft, "all");
    const shownBehind = (text: string) => {
      const drafts = grow(text, sealed);
      drafts.end({ note: "", buttons: [] });
      return drafts.render().map(({ markdown }) => markdown);
    };
    expect(shownBehind("One, two")).toEqual([", two"]);
    expect(shownBehind("On")).toEqual(["On"]);
    expect(shownBehind("Uno, dos")).toEqual(["Uno, dos"]);
    expect(grow("On", sealed).render()).toEqual([]);
  });
});
