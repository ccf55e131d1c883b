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

  test("running steps are shown in the last message, and finished ones stay where they were", () => {
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

  test("steps stay as they were shown if the platform stops showing them, without extra writes", () => {
    let steps: readonly Step[] | undefined = [running];
    const { drafts, shown } = stepsOf(() => steps);
    drafts.append("word");
    expect(shown()).toEqual([[running]]);
    steps = undefined;
    expect(shown()).toEqual([[running]]);
  });
});

describe("reply drafts", () => {
  test("drafts grow with a Stop button under the last message, with closed markup", () => {
    const drafts = open();
    drafts.append(`${"word ".repeat(50)}**bold`);
    const shown = drafts.render();
    expect(shown.length).toBeGreaterThan(1);
    expect(shown.at(-1)).toMatchObject({ streaming: true, buttons: [{ action: "stop", turnId: "turn" }] });
    expect(shown.at(-1)?.markdown).toMatch(/\*\*bold\*\*$/);
    expect(shown.slice(0, -1).every(({ streaming, buttons }) => !streaming && buttons.length === 0)).toBe(true);
  });

  test("drafts end with the model's exact words", () => {
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
  ])("drafts close code that broke off before they add text below, and change nothing else: %j", (text, closed) => {
    const drafts = open();
    drafts.append(text);
    drafts.end({ note: "_Interrupted._", buttons: [retry] });
    expect(drafts.render()).toEqual([{ markdown: `${closed}\n\n_Interrupted._`, buttons: [retry], streaming: false }]);
  });

  const tea = { url: "https://a.example/", title: "Tea", marks: [1] };
  const more = Array.from({ length: 3 }, (_, index) => ({ url: `https://b.example/${index}`, title: "x".repeat(30) }));

  test("drafts list the sources once, under the last message and its note, with the code above closed", () => {
    const drafts = createReplyDrafts({ turnId: "turn", limits, sources: () => [tea] });
    drafts.append(`Old[1]. ${"word ".repeat(50)}`);
    expect(drafts.render().map(({ markdown }) => markdown.includes("Sources"))).toEqual([false, false]);
    drafts.append("\n\n```js\na[1]");
    drafts.end({ note: "", buttons: [], sources: [tea] });
    const [first, last, ...others] = drafts.render().map(({ markdown }) => markdown);
    expect(others).toEqual([]);
    expect(first).toMatch(/^Old\[\[1\]\]\(https:\/\/a\.example\/\)\. word/);
    expect(last).toMatch(/word \n\n```js\na\[1\]\n```\n\n-# Sources:\n-# 1\. \[Tea\]\(https:\/\/a\.example\/\)$/);
  });

  test.each([
    [10, 4],
    [100, 2],
    [150, 2],
    [170, 0],
  ])("drafts list only the sources that fit, and need no further message: %i characters, %i lines", (length, lines) => {
    const drafts = open();
    drafts.append("x".repeat(length));
    drafts.end({ note: "", buttons: [retry], sources: [tea, ...more].slice(0, length > 10 ? 4 : 3) });
    const [shown, ...others] = drafts.render();
    expect(others).toEqual([]);
    expect(shown?.markdown.length).toBeLessThanOrEqual(limits.maxLength);
    expect(shown?.markdown.match(/^-# /gm) ?? []).toHaveLength(lines);
  });

  test("drafts continue after a sealed message that showed its sources", () => {
    const drafts = open();
    drafts.append("One two.");
    drafts.end({ note: "", buttons: [], sources: [tea] });
    const [draft] = drafts.render();
    if (draft === undefined) throw new Error("There is no draft.");
    expect(drafts.seal(1, draft, "all")).toMatchObject({ count: 1, shown: "One two.".length });
  });

  test.each([
    ["are cited later", [[], [tea]]],
    ["are no longer cited", [[tea], []]],
  ])("drafts lose and repeat no text after a sealed message if its pages %s", (_, [before = [], after = []]) => {
    let sources = before;
    const open = (sealed?: Sealed) => createReplyDrafts({ turnId: "turn", limits, sources: () => sources, sealed });
    const drafts = open();
    const words = Array.from({ length: 20 }, (_, index) => `word${index}`).join(" ");
    drafts.append(`Old[1]. ${words}`);
    const [draft] = drafts.render();
    if (draft === undefined) throw new Error("There is no draft.");
    sources = after;
    const sealed = drafts.seal(1, draft, "all");
    const next = open(sealed);
    next.append(`Old[1]. ${words}`);
    for (const one of [drafts, next]) {
      one.append(" The rest.");
      one.end({ note: "", buttons: [], sources: [] });
      expect(one.render().map(({ markdown }) => markdown)).toEqual(["The rest."]);
    }
  });

  test.each([
    ["Some **bold words*", "Some **bold words**"],
    ["Some **", "Some"],
    ["Some `co", "Some `co`"],
    ["See [the page](https://exam", "See the page"],
    ["2*3 is six", "2*3 is six"],
    ["```js\nconst a = 1;", "```js\nconst a = 1;\n```"],
  ])("drafts close open markup of a text that broke off, and drop unfinished markup: %j", (text, closed) => {
    const drafts = open();
    drafts.append(text);
    drafts.end({ note: "_Stopped._", buttons: [retry], isPartial: true });
    expect(drafts.render()).toEqual([{ markdown: `${closed}\n\n_Stopped._`, buttons: [retry], streaming: false }]);
  });

  test("drafts show the refusal instead of a rejected text", () => {
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
  ])(
    "drafts show the refusal under the text that people have read, or in the next message if there is no room: %j",
    (read, texts) => {
      const drafts = open();
      drafts.append(read);
      const [shown] = drafts.render();
      drafts.append(" and more");
      drafts.reject(0, { note: texts[1] ?? "_Not taken._", buttons: [retry] }, shown);
      const ended = drafts.render();
      expect(ended.map(({ markdown }) => markdown)).toEqual(texts);
      expect(ended.map(({ buttons }) => buttons)).toEqual([...texts.slice(1).map(() => []), [retry]]);
      expect(ended.every((draft) => !draft.streaming && draft.source === undefined)).toBe(true);
    },
  );

  test("drafts show the refusal instead of a wait", () => {
    const drafts = open();
    drafts.wait("_Waiting …_");
    const [waiting] = drafts.render();
    drafts.append("word");
    drafts.reject(0, { note: "_Not taken._", buttons: [] }, waiting);
    expect(drafts.render()).toEqual([{ markdown: "_Not taken._", buttons: [], streaming: false }]);
  });
});

test("while code grows, a draft's source leaves its fence open, so that the next draft only appends", () => {
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

describe("messages that accept no more edits", () => {
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
  ])("of %j, sealed messages show everything except %j", (text, rest) => {
    const drafts = grow(text);
    const [draft] = drafts.render();
    if (draft === undefined) throw new Error("There is no draft.");
    const { shown } = drafts.seal(1, draft, "all");
    expect(text.slice(shown)).toBe(rest);
  });

  test("the message after sealed ones continues with the rest, even inside code", () => {
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

  test("after sealed messages comes the rest of the same text, or the whole of a different text", () => {
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
