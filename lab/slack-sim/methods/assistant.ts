import type { Assistant } from "../assistant.ts";
import { findThread, findWritableChannel, type MethodDeps, type Methods } from "../method.ts";
import { invalidArguments } from "../refusal.ts";

const MAX_LOADING_MESSAGES = 10;
const MAX_PROMPTS = 4;

export function createAssistantMethods({ assistant }: MethodDeps & { assistant: Assistant }): Methods {
  return {
    "assistant.threads.setStatus": {
      scopes: ["chat:write", "assistant:write"],
      token: "bot",
      run(args, { workspace }) {
        const channel = findWritableChannel(workspace, args.needText("channel_id"));
        if (!args.has("thread_ts")) throw invalidArguments("missing required field: thread_ts");
        const threadTs = findThread(channel, args) ?? "";
        if (!("status" in args.raw)) throw invalidArguments("missing required field: status");
        const loading = args.raw["loading_messages"];
        const messages = typeof loading === "string" ? (JSON.parse(loading) as unknown) : (loading ?? []);
        if (!Array.isArray(messages) || messages.length > MAX_LOADING_MESSAGES) {
          throw invalidArguments(`no more than ${MAX_LOADING_MESSAGES} items allowed [json-pointer:/loading_messages]`);
        }
        assistant.setStatus(channel, threadTs, args.text("status") ?? "");
        return {};
      },
    },
    "assistant.threads.setTitle": {
      scopes: ["assistant:write"],
      token: "bot",
      run(args, { workspace }) {
        const channel = findWritableChannel(workspace, args.needText("channel_id"));
        assistant.setTitle(channel, args.needText("thread_ts"), args.needText("title"));
        return {};
      },
    },
    "assistant.threads.setSuggestedPrompts": {
      scopes: ["assistant:write"],
      token: "bot",
      run(args, { workspace }) {
        const channel = findWritableChannel(workspace, args.needText("channel_id"));
        const prompts = args.list("prompts");
        if (prompts.length === 0 || prompts.length > MAX_PROMPTS) {
          throw invalidArguments(`must have 1 to ${MAX_PROMPTS} items [json-pointer:/prompts]`);
        }
        assistant.suggest(
          channel,
          args.text("thread_ts"),
          prompts.map(({ title }) => String(title)),
        );
        return {};
      },
    },
    "agents.sessions.setStatus": {
      scopes: ["chat:write", "assistant:write"],
      token: "bot",
      run(args, { workspace }) {
        const channel = findWritableChannel(workspace, args.needText("channel_id"));
        const status = args.needText("status");
        if (!["active", "processing", "suspended", "closed"].includes(status)) {
          throw invalidArguments("must be one of active, processing, suspended, closed [json-pointer:/status]");
        }
        assistant.setSession(channel, args.needText("thread_ts"), status);
        return {};
      },
    },
  };
}
