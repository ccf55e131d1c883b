import { z } from "zod";

/** The words that stand for people, places and permissions in a rule. The same ones are written in the chat. */
const WHO = ["everybody", "members", "guests", "external", "bots", "admins"] as const;
const WHERE = ["everywhere", "direct", "channels", "page"] as const;
const WHAT = ["everything", "chat", "pictures", "files", "tools", "models", "settings"] as const;

/** The words that take a name or an id behind a colon: `channel:C024BE91L`. */
const NAMED_WHO = ["person", "group", "role", "workspace"] as const;
const NAMED_WHERE = ["channel", "category", "workspace", "platform"] as const;
const NAMED_WHAT = ["model", "tool", "server"] as const;

/** Longest name or id, and most of them in one rule. */
const MAX_NAME_CHARS = 200;
const MAX_SELECTORS = 50;
const MAX_RULES = 500;
const MAX_REASON_CHARS = 300;

const who = selector(WHO, NAMED_WHO);
const where = selector(WHERE, NAMED_WHERE);
const what = selector(WHAT, NAMED_WHAT);

export const accessRule = z
  .strictObject({
    allow: oneOrMore(what).exactOptional().describe("What is allowed."),
    deny: oneOrMore(what).exactOptional().describe("What is denied."),
    to: oneOrMore(who).exactOptional().describe("Whom the rule is about; absent: everybody."),
    in: oneOrMore(where).exactOptional().describe("Where it holds; absent: everywhere."),
    because: z
      .string()
      .max(MAX_REASON_CHARS)
      .exactOptional()
      .describe("Said to those who are refused, such as whom to ask."),
  })
  .refine((one) => (one.allow === undefined) !== (one.deny === undefined), {
    message: "must have either allow or deny, and not both",
  });

/** One rule: what, for whom, where. Each part that is absent means all of it. */
export type AccessRule = z.output<typeof accessRule>;

export const access = z
  .strictObject({
    admins: z
      .array(selector([], ["person", "group", "role"]))
      .max(MAX_SELECTORS)
      .exactOptional()
      .describe("Who may change the rules in the chat with /access, and may always change settings."),
    rules: z
      .array(accessRule)
      .max(MAX_RULES)
      .exactOptional()
      .describe("In their order: the first that matches decides."),
  })
  .describe("Who may do what, and where.");

export type AccessPolicy = z.output<typeof access>;

function oneOrMore<T extends z.ZodType>(one: T) {
  return z.union([one, z.array(one).min(1).max(MAX_SELECTORS)], {
    error: (issue) => describeList(issue.input, one),
  });
}

/** The union's own words tell nothing of what is wrong with one of several. */
function describeList(input: unknown, one: z.ZodType): string {
  const wrong = (Array.isArray(input) ? input : [input]).find((each) => !one.safeParse(each).success);
  if (wrong === undefined) return `must have between 1 and ${MAX_SELECTORS} entries`;
  return one.safeParse(wrong).error?.issues[0]?.message ?? "is not known";
}

/** A word, or a word with a name behind it. */
function selector(words: readonly string[], named: readonly string[]) {
  const choices = [...words, ...named.map((word) => `${word}:…`)];
  const pattern = new RegExp(
    `^(?:${[...words, ...named.map((word) => `${word}:\\S[^\\n]{0,${MAX_NAME_CHARS - 1}}`)].join("|")})$`,
  );
  return z.string({ error: `must be one of ${choices.join(", ")}` }).regex(pattern, {
    error: ({ input }) => `has ${JSON.stringify(input)}, which must be one of ${choices.join(", ")}`,
  });
}
