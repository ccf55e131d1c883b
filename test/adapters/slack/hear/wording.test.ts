import { describe, expect, test } from "vitest";
import { firstMention, mentions, readWords } from "../../../../adapters/slack/hear/wording.ts";
import { ACME, fakeNames } from "../workspace.ts";

const NAMES = fakeNames({ U1: "Ada", UBOT: "Palaver", C1: "general" });
const read = (text: string) => readWords(text, ACME, NAMES);

describe("the words of a message", () => {
  test.each([
    ["people by their names", "ask <@U1> and <@U1|ada>", "ask @Ada and @Ada"],
    ["an unknown person by the name next to the id, or else by the id", "ask <@U2|eve>, <@U2>", "ask @eve, @U2"],
    [
      "channels by their names, from the text or looked up",
      "<#C1> <#C1|> <#C9|random> <#C8>",
      "#general #general #random #C8",
    ],
    ["everyone and groups", "<!here> <!subteam^S1|@team> <!subteam^S1>", "@here @team @group"],
    ["a date as Slack shows it", "<!date^1700000000^{date}|14 Nov> ", "14 Nov"],
    ["a bare link", "<https://example.org/a?b=1&amp;c=2>", "https://example.org/a?b=1&c=2"],
    ["a link that shows itself", "<http://example.org|example.org>", "http://example.org"],
    ["a link under other words", "<https://example.org|the page>", "[the page](https://example.org)"],
    ["an email address", "<mailto:a@example.org|a@example.org>", "a@example.org"],
    ["words in brackets that people wrote", "1 &lt; 2 &amp;&amp; &lt;b&gt;", "1 < 2 && <b>"],
    ["text that was escaped twice as escaped once", "&amp;lt;", "&lt;"],
    ["line breaks unchanged", "one\n\n  two", "one\n\n  two"],
  ])("readWords shows %s", async (_, text, shown) => {
    expect(await read(text)).toBe(shown);
  });

  test.each([
    ["<@UBOT> hello", "hello"],
    ["<@UBOT|palaver>, hello", "hello"],
    ["hello <@UBOT>", "hello"],
    ["  <@UBOT> <@UBOT>: hello", "hello"],
    ["is <@UBOT> here?", "is @Palaver here?"],
    ["<@UBOT>", "@Palaver"],
    ["", ""],
  ])("readWords treats %j as addressed to the bot, with the words %j", async (text, said) => {
    expect(await read(text)).toBe(said);
  });

  test("readWords looks up a limited number of names for one message", async () => {
    const asked: string[] = [];
    const person = async (_: unknown, id: string) => {
      asked.push(id);
      return undefined;
    };
    const text = Array.from({ length: 50 }, (_, index) => `<@U${index}X>`).join(" ");
    await readWords(text, ACME, { ...NAMES, person });
    expect(asked).toHaveLength(20);
  });
});

describe("mentions on Slack", () => {
  test("readWords finds mentions with and without a name", () => {
    expect(mentions("a <@U1> b", "U1")).toBe(true);
    expect(mentions("a <@U1|ada> b", "U1")).toBe(true);
    expect(mentions("a <@U11> b", "U1")).toBe(false);
  });

  test.each([
    ["`<@U1>` pings me", false],
    ["```\n<@U1>\n<@U1|ada>\n```", false],
    ["`a` <@U1> `b`", true],
    ["a ` alone <@U1>", true],
    ["an open ``` <@U1>", true],
    ["one `\n<@U1> another `", true],
  ])("readWords finds no mention in code: %j", (text, isMentioned) => {
    expect(mentions(text, "U1")).toBe(isMentioned);
  });

  test("a mention addresses a person only at the start of a text", () => {
    expect(firstMention(" <@U1|ada> you")).toBe("U1");
    expect(firstMention("you, <@U1>")).toBeUndefined();
  });
});
