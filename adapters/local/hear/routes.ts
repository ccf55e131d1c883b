import { type Context, Hono } from "hono";
import { z } from "zod";
import { limitBody } from "../../../src/http/body-limit.ts";
import type { Actor, ImagineMenu } from "../../../src/port/catalogue.ts";
import { ACTIONS, MAX_REASON_CHARS } from "../../../src/port/events.ts";
import { findPersonaProblems } from "../../../src/text/persona-fields.ts";
import { RequestError } from "../errors.ts";
import { PLATFORM } from "../ids.ts";
import type { LocalAdapterOptions } from "../options.ts";
import type { DescribedPicture, PersonaFields, PictureMenu } from "../page/wire.ts";
import { type Directory, findAuthor } from "../store/directory.ts";
import { MAX_FILE_BYTES, MAX_FILES, prepareFile } from "../store/files.ts";
import type { SinkDeps } from "../write/sink.ts";
import { readBody } from "./body.ts";
import type { Chats } from "./chats.ts";
import type { UserActions } from "./user-actions.ts";

/** Longest text a person can send, in UTF-16 units. */
export const MAX_TEXT_LENGTH = 20_000;
const MAX_JSON_BYTES = 256 * 1024;
/** Longest that an upload may take, as long as the server takes any request: for a picture over a poor telephone line. */
const UPLOAD_MS = 120_000;

const nonce = z.string().regex(/^[\w-]{8,64}$/, "The nonce of a request is 8 to 64 letters, digits, - or _.");
const id = z.string().regex(/^[a-z0-9-]{1,64}$/, "That is not an id of this page.");
const text = z
  .string()
  // The sentence is made when it is needed: to load how numbers are written takes 20 ms of each start.
  .max(MAX_TEXT_LENGTH, {
    error: () => `A message has at most ${MAX_TEXT_LENGTH.toLocaleString("en")} characters; send the rest as a file.`,
  })
  .refine((value) => value.isWellFormed() && !value.includes("\0"), "The text holds characters that are no text.");
const name = z
  .string()
  .trim()
  .min(1, "A name is needed.")
  .max(40, "A name has at most 40 characters.")
  .regex(/^[^\p{Cc}\p{Cf}\p{Cs}@/]+$/u, "A name has no @, no / and no control characters.");

const OPTION_NAMES = ["ratio", "size", "count", "model", "spoiler", "basis"] as const;
const SEND = z
  .object({
    nonce,
    authorId: id,
    channelId: id,
    threadId: z.int().positive().nullable(),
    text,
    fileIds: z.array(id).max(MAX_FILES, `At most ${MAX_FILES} files fit in one message.`),
    options: z.partialRecord(z.enum(OPTION_NAMES), z.string().max(200)).optional(),
    persona: z.object({ persona: text, prompts: text }).optional(),
    isNewChat: z.boolean(),
  })
  .refine(({ text, fileIds }) => text.trim() !== "" || fileIds.length > 0, "The message is empty.");
const EDIT = z.object({
  nonce,
  authorId: id,
  text: text.refine((value) => value.trim() !== "", "The message is empty; delete it instead."),
});
const DELETE = z.object({ nonce, authorId: id });
const ACTION = z.object({
  nonce,
  authorId: id,
  action: z.enum(ACTIONS).exclude(["edit"]),
  turnId: z.string().min(1).max(200),
  reason: z.string().max(MAX_REASON_CHARS).optional(),
});
const STOP = z.object({ nonce, authorId: id, turnId: z.string().min(1).max(200) });
const RENAME = z.object({
  title: z
    .string()
    .trim()
    .min(1, "A title is needed.")
    .max(80, "A title has at most 80 characters.")
    .regex(/^[^\p{Cc}\p{Cf}\p{Cs}]+$/u, "A title has no control characters."),
});
const WITHDRAW = z.object({ nonce });
const NAMED = z.object({ name });
/** An answer may have several messages. */
const PREVIEWED = z.object({ text: z.string().max(100_000, "This is too long for a preview.") });

export interface RouteDeps
  extends Pick<SinkDeps, "directory" | "files" | "eventStream" | "now">,
    Pick<LocalAdapterOptions, "botName" | "imagine" | "readAbout" | "readPersona" | "preview"> {
  userActions: UserActions;
  chats: Chats;
  /** Throws while nothing is taken. */
  checkOpen: () => void;
}

/** Serves the page's requests, under `/local`. */
export function createRoutes(deps: RouteDeps): Hono {
  const { userActions, chats } = deps;
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
    tooLong: "A file may have at most 20 MiB.",
  });
  const json = limitBody({
    maxBytes: MAX_JSON_BYTES,
    tooLong: "This is too much for one request; send long text as a file.",
  });
  routes.post("/files", file, (c) => takeFile(c, deps));
  /** Answers with what `act` resolves to, or with an empty object. */
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
  post("/messages/withdraw", WITHDRAW, ({ nonce }) => userActions.withdraw(nonce));
  post("/messages/:id/edit", EDIT, (body, id) => userActions.edit(toMessageNumber(id), body));
  post("/messages/:id/delete", DELETE, (body, id) => userActions.erase(toMessageNumber(id), body));
  post("/messages/:id/action", ACTION, (body, id) => userActions.act(toMessageNumber(id), body));
  post("/stop", STOP, (body) => userActions.stop(body));
  post("/chats/:id/rename", RENAME, ({ title }, id) => chats.rename(id, title));
  post("/chats/:id/delete", DELETE, (body, id) => chats.erase(id, body));
  post("/people", NAMED, ({ name }) => addPerson(name, deps));
  post("/channels", NAMED, ({ name }) => addChannel(name, deps));
  const { preview, readPersona } = deps;
  if (readPersona !== undefined) {
    routes.get("/persona", async (c) => {
      const { persona = "", prompts = [] } = await readPersona({
        platform: PLATFORM,
        channelId: c.req.query("channelId") ?? "",
      });
      c.header("Cache-Control", "no-store");
      return c.json({ persona, prompts: prompts.join("\n") } satisfies PersonaFields);
    });
  }
  if (preview !== undefined) post("/previews", PREVIEWED, ({ text }) => preview(text));
  if (deps.imagine !== undefined) routes.route("/pictures", createPictureRoutes(deps.imagine, deps.directory));
  return routes;
}

/** Refuses a form before anything is stored: it stays open, with the problem at its field. */
function checkPersona(fields: PersonaFields | undefined): void {
  const [problem] = Object.entries(findPersonaProblems(fields ?? {}));
  if (problem !== undefined) throw new RequestError(400, problem[1], { field: problem[0] });
}

function toMessageNumber(id: string): number {
  const number = Number(id);
  if (!Number.isSafeInteger(number) || number < 1) throw new RequestError(404, "There is no such message.");
  return number;
}

function openEvents(c: Context, { eventStream }: RouteDeps): Response {
  const since = Number(c.req.header("last-event-id") ?? c.req.query("since") ?? 0);
  if (!Number.isSafeInteger(since) || since < 0)
    throw new RequestError(400, "The place to go on from is not a number.");
  return c.body(eventStream.open(since), 200, {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    // Proxies that collect an answer before passing it on would hold the stream back.
    "X-Accel-Buffering": "no",
  });
}

async function tellModel(c: Context, { readAbout, directory }: RouteDeps): Promise<Response> {
  const { authorId = "", channelId = "" } = c.req.query();
  const author = findAuthor(directory, authorId);
  const about = await readAbout?.({ platform: PLATFORM, channelId, author });
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

/** Pictures are shown; every other file is only ever saved, and can run nothing in this origin. */
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

/** Encodes a name as RFC 5987 wants it; encodeURIComponent leaves a few characters that have a meaning in a header. */
function encodeFileName(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);
}

function addPerson(name: string, { directory, eventStream, botName }: RouteDeps): { id: string } {
  const person = name.toLowerCase() === botName.toLowerCase() ? undefined : directory.addPerson(name);
  if (person === undefined) throw new RequestError(409, `Somebody is called ${name} already.`);
  eventStream.changed();
  return { id: person.id };
}

function addChannel(name: string, { directory, eventStream, now }: RouteDeps): { id: string } {
  const channel = directory.addChannel(name.replace(/^#+/, "").trim().replace(/\s+/g, "-").toLowerCase(), now());
  if (channel === undefined) throw new RequestError(409, `There is a channel called ${name} already.`);
  eventStream.changed();
  return { id: channel.id };
}

/** Longest wait for the form's choices. */
const ASK_MS = 8_000;

/** Serves the page's form for pictures. */
function createPictureRoutes(menu: ImagineMenu, directory: Pick<Directory, "person">): Hono {
  const { ratios, sizes, maxCount, maxReferences } = menu;

  return new Hono()
    .get("/menu", async (c) => {
      const signal = AbortSignal.any([c.req.raw.signal, AbortSignal.timeout(ASK_MS)]);
      // Without a list the usual model still draws.
      const models = await menu.listModels(signal).catch(() => []);
      c.header("Cache-Control", "no-store");
      return c.json({ ratios, sizes, maxCount, maxReferences, models } satisfies PictureMenu);
    })
    .get("/:id", async (c) => {
      const signal = AbortSignal.any([c.req.raw.signal, AbortSignal.timeout(ASK_MS)]);
      const { authorId = "", channelId = "" } = c.req.query();
      const by: Actor = { author: findAuthor(directory, authorId), reply: { platform: PLATFORM, channelId } };
      const id = c.req.param("id");
      const described: DescribedPicture | undefined = await menu.describe(id, by, signal).catch((cause: unknown) => {
        throw new RequestError(503, "How this picture was asked for cannot be read just now. Try again.", { cause });
      });
      if (described === undefined) {
        throw new RequestError(404, "This picture is too old: how it was asked for is not kept any more.");
      }
      c.header("Cache-Control", "no-store");
      return c.json(described);
    });
}
