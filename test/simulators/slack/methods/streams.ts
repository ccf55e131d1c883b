import { type Arguments } from "../arguments.ts";
import { checkBlocks, MAX_MARKDOWN_CHARS, readMetadata } from "../content-rules.ts";
import { messageToWire } from "../message-wire.ts";
import {
  type Call,
  checkWritable,
  findChannel,
  findMessage,
  findThread,
  findWritableChannel,
  type MethodDeps,
  type Methods,
} from "../method.ts";
import { invalidArguments, SlackRefusal } from "../refusal.ts";
import { listOf } from "../shown-text.ts";
import { type Channel, emptyContent, isOfApp, type Json, type Message, type Stream, type Workspace } from "../world.ts";

/** What a call adds to a streamed message. */
interface Addition {
  text: string;
  tasks: Json[];
  planTitle: string | undefined;
  blocks: Json[];
}

/** The methods that let a message grow: in progress, then completed by the app, a person or the clock. */
export function createStreamMethods({ core, messages }: MethodDeps): Methods {
  const scopes = ["chat:write"];
  const { clock, limits, violations } = core;

  function start(args: Arguments, { workspace }: Call): Json {
    const channel = findWritableChannel(workspace, args.needText("channel"));
    args.needText("thread_ts");
    const threadTs = findThread(channel, args);
    checkRecipient(workspace, channel, args);
    const addition = readAddition(args);
    const stream: Stream = {
      state: "in_progress",
      endedBy: undefined,
      startedAtMs: clock.now(),
      tasks: new Map(),
      planTitle: undefined,
      isKnownOver: false,
    };
    const content = grow(emptyContent({ markdown: "" }), stream, addition);
    const message = messages.post(channel, workspace.bot, content, { threadTs, stream });
    clock.after(limits.streamMs, () => expire(message, stream));
    return { channel: channel.id, ts: message.ts };
  }

  function expire(message: Message, stream: Stream): void {
    if (stream.state !== "in_progress") return;
    Object.assign(stream, { state: "errored", endedBy: "expired" });
    if (!message.isDeleted) messages.change(message, {});
  }

  /** The stream a call continues. Refuses when it is over, and records it when the app knew that. */
  function openStream(args: Arguments, { workspace }: Call, method: string): { message: Message; stream: Stream } {
    const channel = findChannel(workspace, args.needText("channel"));
    const message = findMessage(channel, args.needText("ts"));
    checkWritable(workspace, channel);
    if (!isOfApp(message)) throw new SlackRefusal("message_not_owned_by_app");
    const { stream } = message;
    if (stream?.state === "in_progress") return { message, stream };
    if (stream?.isKnownOver) {
      violations.record("dead-stream", `${method} for ${message.ts}, although the app knew that this stream is over.`);
    }
    if (stream !== undefined) stream.isKnownOver = true;
    const isStopped = stream?.endedBy === "user" && method === "chat.appendStream";
    throw new SlackRefusal(isStopped ? "stopped_by_user" : "message_not_in_streaming_state");
  }

  function append(args: Arguments, call: Call): Json {
    const { message, stream } = openStream(args, call, "chat.appendStream");
    const addition = readAddition(args);
    if (isEmpty(addition)) throw new SlackRefusal("no_text");
    messages.change(message, grow(message.content, stream, addition));
    return { channel: message.channel.id, ts: message.ts };
  }

  function stop(args: Arguments, call: Call): Json {
    const { message, stream } = openStream(args, call, "chat.stopStream");
    const addition = readAddition(args);
    const blocks = args.list("blocks");
    checkBlocks(blocks);
    const metadata = readMetadata(args) ?? message.content.metadata;
    const content = grow(message.content, stream, addition);
    Object.assign(stream, { state: "completed", endedBy: "app", isKnownOver: true });
    messages.change(message, { ...content, blocks: [...content.blocks, ...blocks], metadata });
    const { channel, ts } = message;
    return { channel: channel.id, ts, message: messageToWire(message, core.origin(), { withMetadata: true }) };
  }

  function grow(content: Message["content"], stream: Stream, addition: Addition): Message["content"] {
    const markdown = (content.markdown ?? "") + addition.text;
    const tasks = new Map(stream.tasks);
    for (const task of addition.tasks) tasks.set(String(task["id"]), { ...tasks.get(String(task["id"])), ...task });
    const isGrown = !isEmpty(addition);
    if (isGrown && Buffer.byteLength(markdown) + tasksBytes(tasks) > limits.streamBytes) {
      throw new SlackRefusal("msg_too_long");
    }
    stream.tasks = tasks;
    stream.planTitle = addition.planTitle ?? stream.planTitle;
    return { ...content, markdown, blocks: [...content.blocks, ...addition.blocks] };
  }

  return {
    "chat.startStream": { scopes, token: "bot", run: start },
    "chat.appendStream": { scopes, token: "bot", run: append },
    "chat.stopStream": { scopes, token: "bot", run: stop },
  };
}

function checkRecipient({ id, users }: Workspace, { kind }: Channel, args: Arguments): void {
  const userId = args.text("recipient_user_id");
  const teamId = args.text("recipient_team_id");
  if (kind !== "im" && teamId === undefined) throw new SlackRefusal("missing_recipient_team_id");
  if (kind !== "im" && userId === undefined) throw new SlackRefusal("missing_recipient_user_id");
  if (userId !== undefined && !users.has(userId)) throw new SlackRefusal("user_not_found");
  if (teamId !== undefined && teamId !== id) throw new SlackRefusal("team_not_found");
}

function readAddition(args: Arguments): Addition {
  const markdown = args.text("markdown_text");
  const chunks = args.list("chunks");
  if (markdown !== undefined && chunks.length > 0)
    throw invalidArguments("markdown_text and chunks exclude each other");
  const of = (type: string) => chunks.filter((chunk) => chunk["type"] === type);
  const known = ["markdown_text", "task_update", "plan_update", "blocks"];
  if (chunks.some((chunk) => !known.includes(String(chunk["type"])))) throw new SlackRefusal("invalid_chunks");
  const text =
    markdown ??
    of("markdown_text")
      .map((chunk) => String(chunk["text"]))
      .join("");
  if (text.length > MAX_MARKDOWN_CHARS) throw new SlackRefusal("msg_too_long");
  const tasks = of("task_update");
  const statuses = ["pending", "in_progress", "complete", "error"];
  if (tasks.some(({ id, title, status }) => !isText(id) || !isText(title) || !statuses.includes(String(status)))) {
    throw new SlackRefusal("invalid_chunks");
  }
  const blocks = of("blocks").flatMap((chunk) => listOf(chunk["blocks"]));
  checkBlocks(blocks);
  const planTitle = of("plan_update").at(-1)?.["title"];
  return { text, tasks, blocks, planTitle: isText(planTitle) ? planTitle : undefined };
}

function isEmpty({ text, tasks, planTitle, blocks }: Addition): boolean {
  return text === "" && tasks.length === 0 && planTitle === undefined && blocks.length === 0;
}

function tasksBytes(tasks: ReadonlyMap<string, Json>): number {
  const texts = [...tasks.values()].flatMap((task) => ["title", "details", "output"].map((name) => task[name]));
  return texts.reduce<number>((total, text) => total + (isText(text) ? Buffer.byteLength(text) : 0), 0);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
