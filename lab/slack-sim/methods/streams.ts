import type { Arguments } from "../arguments.ts";
import { type Addition, applyTasks, isEmpty, openTitles, readAddition, weighTasks } from "../chunks.ts";
import { checkBlocks, readMetadata } from "../content-rules.ts";
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
import { type Channel, emptyContent, isOfApp, type Json, type Message, type Stream, type Workspace } from "../world.ts";

const DISPLAY_MODES = ["timeline", "plan"];

/** The methods for a growing message, which the app, a person or the clock can end. */
export function createStreamMethods({ core, messages }: MethodDeps): Methods {
  const scopes = ["chat:write"];
  const { clock, limits, violations } = core;

  function start(args: Arguments, { workspace }: Call): Json {
    const channel = findWritableChannel(workspace, args.needText("channel"));
    args.needText("thread_ts");
    const threadTs = findThread(channel, args);
    checkRecipient(workspace, channel, args);
    if (!DISPLAY_MODES.includes(args.text("task_display_mode") ?? "timeline")) {
      throw invalidArguments("task_display_mode must be timeline or plan");
    }
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

  /** Returns the stream that a call continues. Throws if it has ended, and records a violation if the app knew that. */
  function openStream(args: Arguments, { workspace }: Call, method: string): { message: Message; stream: Stream } {
    const channel = findChannel(workspace, args.needText("channel"));
    const message = findMessage(channel, args.needText("ts"));
    checkWritable(workspace, channel);
    if (!isOfApp(message)) throw new SlackRefusal("message_not_owned_by_app");
    const { stream } = message;
    if (stream?.state === "in_progress") return { message, stream };
    if (stream?.isKnownOver) {
      violations.record("dead-stream", `${method} for ${message.ts}, although the app knew that this stream was over.`);
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
    // If a stream ends without content, do not check its tasks: the app should then rewrite the message, which removes
    // them.
    if (!isEmpty(addition) || blocks.length > 0) noticeOpenTasks(message, stream);
    Object.assign(stream, { state: "completed", endedBy: "app", isKnownOver: true });
    messages.change(message, { ...content, blocks: [...content.blocks, ...blocks], metadata });
    const { channel, ts } = message;
    return { channel: channel.id, ts, message: messageToWire(message, core.origin(), { withMetadata: true }) };
  }

  function noticeOpenTasks({ ts }: Message, { tasks }: Stream): void {
    for (const title of openTitles(tasks)) {
      violations.record(
        "open-task",
        `The stream ${ts} was stopped while its task ${JSON.stringify(title)} was still running.`,
      );
    }
  }

  function grow(content: Message["content"], stream: Stream, addition: Addition): Message["content"] {
    const markdown = (content.markdown ?? "") + addition.text;
    const tasks = applyTasks(stream.tasks, addition.tasks);
    const isGrown = !isEmpty(addition);
    if (isGrown && Buffer.byteLength(markdown) + weighTasks(tasks) > limits.streamBytes) {
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
