import { z } from "zod";

/** The words of a rule for people, channels and permissions. Chat commands use them too. */
const WHO = ["everybody", "members", "guests", "external", "bots", "admins"] as const;
const WHERE = ["everywhere", "direct", "channels", "page"] as const;
const WHAT = ["everything", "chat", "pictures", "files", "tools", "models", "settings"] as const;

/** These words are followed by a colon and a name or an id: `channel:C024BE91L`. */
const NAMED_WHO = ["person", "group", "role", "workspace"] as const;
const NAMED_WHERE = ["channel", "category", "workspace", "platform"] as const;
const NAMED_WHAT = ["model", "tool", "server"] as const;

/** Limits for the length of a name or id, and for the number of them in one rule. */
const MAX_NAME_CHARS = 200;
const MAX_SELECTORS = 50;
const MAX_RULES = 500;
const MAX_REASON_CHARS = 300;

const who = selector(WHO, NAMED_WHO);
const where = selector(WHERE, NAMED_WHERE);
const what = selector(WHAT, NAMED_WHAT);

export const accessRule = z
  .strictObject({
    allow: oneOrMore(what).exactOptional().describe("Permissions that the rule allows."),
    deny: oneOrMore(what).exactOptional().describe("Permissions that the rule denies."),
    to: oneOrMore(who).exactOptional().describe("The people it applies to. Default: everyone."),
    in: oneOrMore(where).exactOptional().describe("The places it applies to. Default: everywhere."),
    because: z
      .string()
      .max(MAX_REASON_CHARS)
      .exactOptional()
      .describe("Shown to people whom the rule refuses, for example to say whom to ask."),
  })
  .refine((one) => (one.allow === undefined) !== (one.deny === undefined), {
    message: "must have either allow or deny, not both",
  });

/** A rule. If it names no permissions, people or channels, it applies to all of them. */
export type AccessRule = z.output<typeof accessRule>;

export const access = z
  .strictObject({
    admins: z
      .array(selector([], ["person", "group", "role"]))
      .max(MAX_SELECTORS)
      .exactOptional()
      .describe("Admins can change the rules in chat with /access, and can always change settings."),
    rules: z.array(accessRule).max(MAX_RULES).exactOptional().describe("The first rule that matches decides."),
  })
  .describe("Permissions: who can do what, and where.");

export type AccessPolicy = z.output<typeof access>;

function oneOrMore<T extends z.ZodType>(one: T) {
  return z.union([one, z.array(one).min(1).max(MAX_SELECTORS)], {
    error: (issue) => describeList(issue.input, one),
  });
}

/** Describes the first wrong entry, because Zod's message for a union does not. */
function describeList(input: unknown, one: z.ZodType): string {
  const wrong = (Array.isArray(input) ? input : [input]).find((each) => !one.safeParse(each).success);
  if (wrong === undefined) return `must have between 1 and ${MAX_SELECTORS} entries`;
  return one.safeParse(wrong).error?.issues[0]?.message ?? "is not known";
}

function selector(words: readonly string[], named: readonly string[]) {
  const choices = [...words, ...named.map((word) => `${word}:…`)];
  const pattern = new RegExp(
    `^(?:${[...words, ...named.map((word) => `${word}:\\S[^\\n]{0,${MAX_NAME_CHARS - 1}}`)].join("|")})$`,
  );
  return z.string({ error: `must be one of ${choices.join(", ")}` }).regex(pattern, {
    error: ({ input }) => `has ${JSON.stringify(input)}, which must be one of ${choices.join(", ")}`,
  });
}
