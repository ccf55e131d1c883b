import { z } from "zod";
import { findComponentProblems, lengthOf, textsOf } from "./component-rules.ts";
import { MESSAGE_FLAGS } from "./message-payload.ts";
import { type FormProblem, refuseForm } from "./refusals.ts";

const MAX_CONTENT = 2000;
const MAX_EMBED_TEXT = 6000;
const MAX_FILES = 10;

const SNOWFLAKE = z.string().regex(/^\d{17,20}$/, "Value is not snowflake.");
const PAYLOAD = z.record(z.string(), z.unknown());
const EMBED = z.looseObject({
  title: z.string().max(256).nullish(),
  description: z.string().max(4096).nullish(),
  footer: z.looseObject({ text: z.string().max(2048) }).nullish(),
  author: z.looseObject({ name: z.string().max(256) }).nullish(),
  fields: z
    .array(z.looseObject({ name: z.string().max(256), value: z.string().max(1024) }))
    .max(25)
    .nullish(),
});
const ALLOWED_MENTIONS = z.object({
  parse: z.array(z.enum(["users", "roles", "everyone"])).nullish(),
  users: z.array(SNOWFLAKE).max(100).nullish(),
  roles: z.array(SNOWFLAKE).max(100).nullish(),
  replied_user: z.boolean().nullish(),
});
const REFERENCE = z.object({
  type: z.number().optional(),
  message_id: SNOWFLAKE,
  channel_id: SNOWFLAKE.nullish(),
  guild_id: SNOWFLAKE.nullish(),
  fail_if_not_exists: z.boolean().nullish(),
});
const MESSAGE_BODY = z.object({
  content: z.string().nullish(),
  nonce: z.union([z.string().max(25), z.number().int()]).nullish(),
  enforce_nonce: z.boolean().nullish(),
  embeds: z.array(EMBED).max(10).nullish(),
  allowed_mentions: ALLOWED_MENTIONS.nullish(),
  message_reference: REFERENCE.nullish(),
  components: z.array(PAYLOAD).nullish(),
  flags: z.number().int().nullish(),
  attachments: z
    .array(
      z.object({
        id: z.union([z.string(), z.number()]).transform(String),
        filename: z.string().nullish(),
        description: z.string().max(1024).nullish(),
      }),
    )
    .max(MAX_FILES)
    .nullish(),
});

export type MessageBody = z.infer<typeof MESSAGE_BODY>;

/** Reads the body of a post or an edit. Throws 50035 with the paths of all problems. */
export function readMessageBody(json: unknown): MessageBody {
  const body = readForm(MESSAGE_BODY, json ?? {});
  const problems: FormProblem[] = [];
  // Discord does not document which characters it counts, so the stricter count applies here.
  if ((body.content ?? "").length > MAX_CONTENT) {
    problems.push(tooLong(["content"], `Must be ${MAX_CONTENT} or fewer in length.`));
  }
  const embedText = (body.embeds ?? []).reduce((sum, embed) => sum + lengthOfEmbed(embed), 0);
  if (embedText > MAX_EMBED_TEXT) {
    const message = `Embed size exceeds maximum size of ${MAX_EMBED_TEXT}`;
    problems.push({ path: ["embeds"], code: "MAX_EMBED_SIZE_EXCEEDED", message });
  }
  const isV2 = ((body.flags ?? 0) & MESSAGE_FLAGS.isComponentsV2) !== 0;
  if (isV2 && (body.content || (body.embeds ?? []).length > 0)) {
    const code = "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2";
    problems.push({ path: ["content"], code, message: "The 'content' field cannot be used with components V2" });
  }
  problems.push(...findAllowedProblems(body), ...findComponentProblems(body.components ?? [], isV2));
  if (problems.length > 0) throw refuseForm(...problems);
  return body;
}

/** Returns all text of a body that can contain mentions: its content, and the texts of its components. */
export function textOf({ content, components }: Pick<MessageBody, "content" | "components">): string {
  return [content ?? "", ...textsOf(components ?? [])].join("\n");
}

/** Checks a body against a schema. Throws 50035 if it does not match. */
export function readForm<T extends z.ZodType>(schema: T, json: unknown): z.infer<T> {
  const { data, error } = schema.safeParse(json);
  if (error === undefined) return data;
  throw refuseForm(
    ...error.issues.map(({ path, code, message }) => ({
      path: path.map((key) => (typeof key === "number" ? key : String(key))),
      code: code === "too_big" ? "BASE_TYPE_MAX_LENGTH" : "BASE_TYPE_INVALID",
      message,
    })),
  );
}

function tooLong(path: string[], message: string): FormProblem {
  return { path, code: "BASE_TYPE_MAX_LENGTH", message };
}

function findAllowedProblems({ allowed_mentions: allowed }: MessageBody): FormProblem[] {
  return (["users", "roles"] as const)
    .filter((kind) => allowed?.parse?.includes(kind) === true && (allowed[kind] ?? []).length > 0)
    .map((kind) => ({
      path: ["allowed_mentions", kind],
      code: "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
      message: `parse:["${kind}"] and ${kind}: [ids...] are mutually exclusive.`,
    }));
}

function lengthOfEmbed({ title, description, footer, author, fields }: z.infer<typeof EMBED>): number {
  const texts = [title, description, footer?.text, author?.name, ...(fields ?? []).flatMap((f) => [f.name, f.value])];
  return texts.reduce((sum: number, text) => sum + lengthOf(text ?? ""), 0);
}
