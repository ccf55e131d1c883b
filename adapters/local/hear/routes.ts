import { type Context, Hono } from "hono";
import { z } from "zod";
import { askWithin } from "../../../src/concurrency/deadlines.ts";
import { limitBody } from "../../../src/http/body-limit.ts";
import type { Actor, ImagineMenu } from "../../../src/port/catalogue.ts";
import { ACTIONS, MAX_REASON_CHARS } from "../../../src/port/events.ts";
import { findPersonaProblems } from "../../../src/text/persona-fields.ts";
import { RequestError } from "../errors.ts";
import { PERSON, PLATFORM } from "../ids.ts";
import type { LocalAdapterOptions } from "../options.ts";
import type { DescribedPicture, PersonaFields, PictureMenu, ScheduleFields } from "../page/wire.ts";
import { MAX_FILE_BYTES, MAX_FILES, prepareFile } from "../store/files.ts";
import type { SinkDeps } from "../write/sink.ts";
import { readBody } from "./body.ts";
import type { ChatActions } from "./chats.ts";
import type { UserActions } from "./listener.ts";

/** Longest text of a message, in UTF-16 units. */
export const MAX_TEXT_LENGTH = 20_000;
const MAX_JSON_BYTES = 256 * 1024;
/** Longest upload, the same as the server's limit for any request: enough for an image over a slow connection. */
const UPLOAD_MS = 120_000;

const nonce = z.string().regex(/^[\w-]{8,64}$/, "The nonce of a request must be 8 to 64 letters, digits, - or _.");
const id = z.string().regex(/^[a-z0-9-]{1,64}$/, "This id is not valid.");
const text = z
  .string()
  // Creates the sentence only when it is needed: the first use of number formats takes 20 ms.
  .max(MAX_TEXT_LENGTH, {
    error: () =>
      `A message can have at most ${MAX_TEXT_LENGTH.toLocaleString("en")} characters; send the rest as a file.`,
  })
  .refine((value) => value.isWellFormed() && !value.includes("\0"), "The text contains invalid characters.");

const OPTION_NAMES = ["ratio", "size", "count", "model", "spoiler", "basis"] as const;
const SEND = z
  .object({
    nonce,
    chatId: id,
    text,
    fileIds: z.array(id).max(MAX_FILES, `At most ${MAX_FILES} files fit in one message.`),
    options: z.partialRecord(z.enum(OPTION_NAMES), z.string().max(200)).optional(),
    persona: z.object({ persona: text, prompts: text }).optional(),
    isNewChat: z.boolean(),
  })
  .refine(({ text, fileIds }) => text.trim() !== "" || fileIds.length > 0, "The message is empty.");
const EDIT = z.object({
  nonce,
  text: text.refine((value) => value.trim() !== "", "The message is empty; delete it instead."),
});
const ACT = z.object({ nonce });
const ACTION = z.object({
  nonce,
  action: z.enum(ACTIONS).exclude(["edit"]),
  turnId: z.string().min(1).max(200),
  reason: z.string().max(MAX_REASON_CHARS).optional(),
  fields: z.object({ time: text, task: text }).optional(),
});
const STOP = z.object({ nonce, turnId: z.string().min(1).max(200) });
const RENAME = z.object({
  title: z
    .string()
    .trim()
    .min(1, "The title is empty.")
    .max(80, "A title can have at most 80 characters.")
    .regex(/^[^\p{Cc}\p{Cf}\p{Cs}]+$/u, "A title cannot contain control characters."),
});
/** The limit is long enough for all messages of an answer. */
const PREVIEWED = z.object({ text: z.string().max(100_000, "This is too long for a preview.") });

export interface RouteDeps
  extends Pick<SinkDeps, "files" | "eventStream" | "now">,
    Pick<LocalAdapterOptions, "imagine" | "readAbout" | "readPersona" | "scheduleForm" | "preview"> {
  userActions: UserActions;
  chatActions: ChatActions;
  /** Throws while the process accepts no events. */
  checkOpen: () => void;
}

export function createRoutes(deps: RouteDeps): Hono {
  const { userActions, chatActions } = deps;
  const routes = new Hono();
  routes.get("/events", (c) => openEvents(c, deps));
  routes.get("/files/:id", (c) => serveFile(c, deps));
  routes.get("/model", (c) => tellModel(c, deps));
  routes.post("*", async (_, next) => {
    deps.checkOpen();
    await next();
  });
  const file = limitBody({
    maxBytes: MAX_FILE_BYTES,
    timeoutMs: UPLOAD_MS,
    tooLong: "A file can be at most 20 MiB.",
  });
  const json = limitBody({
    maxBytes: MAX_JSON_BYTES,
    tooLong: "The request is too large; send long text as a file.",
  });
  routes.post("/files", file, (c) => takeFile(c, deps));
  /** Responds with the value of `act`, or with an empty object. */
  function post<S extends z.ZodType>(path: string, schema: S, act: (body: z.infer<S>, id: string) => unknown): void {
    routes.post(path, json, async (c) => {
      const answer = await act(await readBody(c, schema), c.req.param("id") ?? "");
      return c.json(answer ?? {});
    });
  }
  post("/messages", SEND, async (body) => {
    checkPersona(body.persona);
    return { id: await userActions.send(body) };
  });
  post("/messages/withdraw", ACT, ({ nonce }) => userActions.withdraw(nonce));
  post("/messages/:id/edit", EDIT, (body, id) => userActions.edit(toMessageNumber(id), body));
  post("/messages/:id/delete", ACT, (body, id) => userActions.erase(toMessageNumber(id), body));
  post("/messages/:id/action", ACTION, async (body, id) => {
    if (body.fields !== undefined) await checkSchedule(body.turnId, body.fields, deps);
    await userActions.act(toMessageNumber(id), body);
  });
  post("/stop", STOP, (body) => userActions.stop(body));
  post("/chats/:id/rename", RENAME, ({ title }, id) => chatActions.rename(id, title));
  post("/chats/:id/delete", ACT, (body, id) => chatActions.erase(id, body));
  routes.get("/schedules/:id", async (c) => {
    const by = toActor(c.req.query("chatId"));
    const values = await deps.scheduleForm?.read(c.req.param("id"), by);
    c.header("Cache-Control", "no-store");
    return c.json(values ?? null);
  });
  const { preview, readPersona } = deps;
  if (readPersona !== undefined) {
    routes.get("/persona", async (c) => {
      const channelId = c.req.query("chatId") ?? "";
      const { persona = "", prompts = [] } = await readPersona({ platform: PLATFORM, channelId });
      c.header("Cache-Control", "no-store");
      return c.json({ persona, prompts: prompts.join("\n") } satisfies PersonaFields);
    });
  }
  if (preview !== undefined) post("/previews", PREVIEWED, ({ text }) => preview(text));
  if (deps.imagine !== undefined) routes.route("/pictures", createPictureRoutes(deps.imagine));
  return routes;
}

/** Longest wait for the store before a form is accepted without a check. */
const CHECK_MS = 2_000;

/** Refuses a form before anything is stored. The form stays open and shows the problem at its field. */
function checkPersona(fields: PersonaFields | undefined): void {
  const [problem] = Object.entries(findPersonaProblems(fields ?? {}));
  if (problem !== undefined) throw new RequestError(400, problem[1], { field: problem[0] });
}

/** Refuses a wrong time or task like `checkPersona`. If the store is late, the bot says later what is wrong. */
async function checkSchedule(id: string, fields: ScheduleFields, deps: RouteDeps): Promise<void> {
  const find = async () => deps.scheduleForm?.findProblems(id, fields, toActor());
  const [problem] = Object.entries((await askWithin(CHECK_MS, find, undefined)) ?? {});
  if (problem !== undefined) throw new RequestError(400, problem[1], { field: problem[0] });
}

function toActor(channelId = ""): Actor {
  return { author: PERSON, reply: { platform: PLATFORM, channelId } };
}

function toMessageNumber(id: string): number {
  const number = Number(id);
  if (!Number.isSafeInteger(number) || number < 1) throw new RequestError(404, "This message does not exist.");
  return number;
}

function openEvents(c: Context, { eventStream }: RouteDeps): Response {
  const since = Number(c.req.header("last-event-id") ?? c.req.query("since") ?? 0);
  if (!Number.isSafeInteger(since) || since < 0)
    throw new RequestError(400, "The event id to resume from is not a number.");
  return c.body(eventStream.open(since), 200, {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    // Keeps proxies from buffering the stream.
    "X-Accel-Buffering": "no",
  });
}

async function tellModel(c: Context, { readAbout }: RouteDeps): Promise<Response> {
  const channelId = c.req.query("chatId") ?? "";
  const about = await readAbout?.({ platform: PLATFORM, channelId, author: PERSON });
  c.header("Cache-Control", "no-store");
  return c.json({ model: about?.model ?? null });
}

async function takeFile(c: Context, { files, now }: RouteDeps): Promise<Response> {
  const bytes = new Uint8Array(await c.req.arrayBuffer());
  if (bytes.length === 0) throw new RequestError(400, "The file is empty.");
  const file = await prepareFile({ name: readFileName(c.req.header("x-file-name")), bytes }, c.req.raw.signal);
  return c.json(await files.add(file, now()));
}

function readFileName(header = "file"): string {
  try {
    return decodeURIComponent(header);
  } catch {
    return "file";
  }
}

/** Shows images. All other files can only be saved, so that none can run in this origin. */
function serveFile(c: Context, { files }: RouteDeps): Response {
  const id = c.req.param("id") ?? "";
  const file = files.read(id);
  if (file === undefined) throw new RequestError(404, "This file is gone: its message was deleted.");
  const etag = `"${id}"`;
  const kind = file.isImage ? "inline" : "attachment";
  const headers = {
    ETag: etag,
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Content-Disposition": `${kind}; filename*=UTF-8''${encodeFileName(file.name)}`,
    "Content-Type": file.isImage ? file.contentType : "application/octet-stream",
  };
  if (c.req.header("if-none-match") === etag) return c.body(null, 304, headers);
  return c.body(toStream(file.slices()), 200, { ...headers, "Content-Length": String(file.sizeBytes) });
}

function toStream(source: AsyncIterable<Uint8Array>): ReadableStream {
  const iterator = source[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
  });
}

/** Encodes a name as RFC 5987 requires: `encodeURIComponent` leaves some characters that have a meaning in a header. */
function encodeFileName(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);
}

const ASK_MS = 8_000;

function createPictureRoutes(menu: ImagineMenu): Hono {
  const { ratios, sizes, maxCount, maxReferences } = menu;

  return new Hono()
    .get("/menu", async (c) => {
      const signal = AbortSignal.any([c.req.raw.signal, AbortSignal.timeout(ASK_MS)]);
      // If the models cannot be listed, the form still works with the default model.
      const models = await menu.listModels(signal).catch(() => []);
      c.header("Cache-Control", "no-store");
      return c.json({ ratios, sizes, maxCount, maxReferences, models } satisfies PictureMenu);
    })
    .get("/:id", async (c) => {
      const signal = AbortSignal.any([c.req.raw.signal, AbortSignal.timeout(ASK_MS)]);
      const by = toActor(c.req.query("chatId"));
      const id = c.req.param("id");
      const described: DescribedPicture | undefined = await menu.describe(id, by, signal).catch((cause: unknown) => {
        throw new RequestError(503, "I can't look up the request for this image right now. Try again.", {
          cause,
        });
      });
      if (described === undefined) {
        throw new RequestError(404, "This image is too old: I no longer know how it was requested.");
      }
      c.header("Cache-Control", "no-store");
      return c.json(described);
    });
}
