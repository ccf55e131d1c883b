// Extra behaviour for any dialect, switched on by name.
import { type Accent, type Answer, type Dialect, type Fields, isRecord, refuse, type Sent } from "./dialect.ts";
import { thinkAbout } from "./sandbox.ts";
import { firstHalf, split } from "./stream.ts";

const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mMQEREBAAB8AD2sffR3AAAAAElFTkSuQmCC";

/** Puts an empty object in front of a tool call's arguments. */
export const STRAY_BRACES: Accent = {
  toAnswer: (answer) => ({
    ...answer,
    calls: answer.calls.map((call) => ({ ...call, arguments: `{}${call.arguments}` })),
  }),
};

const traits = {
  "no-credit": ({ noCredit }: Dialect): Accent => ({ rules: [() => noCredit] }),
  /** Interrupts every answer halfway, in the dialect's way. */
  "break-off": ({ breaksOff = [{ type: "cut" }] }: Dialect): Accent => ({
    toStream: (stream) => [...firstHalf(stream), ...breaksOff],
  }),
  /** Sends `finish_reason` in every chunk and pauses after the second one. */
  "finish-in-every-chunk": {
    toStream: (stream) =>
      stream.flatMap((sent, index): Sent[] => {
        const ended: Sent = sent.type === "chunk" ? { ...sent, finish: sent.finish ?? "stop" } : sent;
        return index === 2 ? [{ type: "wait", forMs: 2_200 }, ended] : [ended];
      }),
  },
  "finish-insufficient_system_resource": endsWith("insufficient_system_resource"),
  "finish-abort": endsWith("abort"),
  "finish-network_error": endsWith("network_error"),
  /** Puts an image into the text, as a data URL. */
  "picture-in-text": {
    toAnswer: (answer) => ({ ...answer, content: `${answer.content}\n\n![picture](${PIXEL})` }),
  },
  "picture-beside-text": { toAnswer: (answer) => ({ ...answer, pictures: [PIXEL] }) },
  /** Sends reasoning in forms that no dialect here uses. */
  "thinks-in-summaries": thinks((text) => ({ reasoning_details: [{ type: "reasoning.summary", summary: text }] })),
  "thinks-in-secret": thinks((text) => ({ reasoning_details: [{ type: "reasoning.encrypted", data: btoa(text) }] })),
  "thinks-in-parts": thinks((text) => ({ content: [{ type: "thinking", thinking: [{ type: "text", text }] }] })),
  "thinks-in-think-tags": thinksInTags("think"),
  "thinks-in-thinking-tags": thinksInTags("thinking"),
  "thinks-in-reasoning-tags": thinksInTags("reasoning"),
  "cumulative-text": {
    toStream(stream) {
      let all = "";
      return stream.map((sent) => {
        if (sent.type !== "chunk" || typeof sent.delta["content"] !== "string") return sent;
        all += sent.delta["content"];
        return { ...sent, delta: { ...sent.delta, content: all } };
      });
    },
  },
  /** Encodes object arguments of tool calls as JSON strings. */
  "nested-arguments-as-text": withArguments((values) =>
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, isRecord(value) ? JSON.stringify(value) : value]),
    ),
  ),
  "null-arguments": {
    toAnswer: (answer, { tools }) =>
      changeArguments(answer, (values, call) => {
        const schema = tools?.find((tool) => tool.function.name === call)?.function.parameters?.["properties"];
        const nothing = Object.keys(isRecord(schema) ? schema : {}).map((name) => [name, null]);
        return { ...Object.fromEntries(nothing), ...values };
      }),
  },
  "stray-braces": STRAY_BRACES,
  /** Appends a control token to tool names, as vLLM does with gpt-oss: https://github.com/vllm-project/vllm/pull/35906 */
  "harmony-tool-names": {
    toAnswer: (answer) => ({
      ...answer,
      calls: answer.calls.map((call) => ({ ...call, name: `${call.name}<|channel|>commentary` })),
    }),
  },
  /** Responds with a 429 that means "no credit", so waiting does not help. */
  "quota-429": {
    rules: [
      () => {
        const message = "You exceeded your current quota, please check your plan and billing details.";
        return refuse(429, message, { type: "insufficient_quota", code: "insufficient_quota" });
      },
    ],
  },
  /** Responds with a 429 that has the delay only in its body. */
  "wait-in-body": {
    rules: [
      () => ({
        status: 429,
        body: [
          {
            error: {
              code: 429,
              message: "You exceeded your current quota. Please retry in 7200s.",
              status: "RESOURCE_EXHAUSTED",
              details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "7200s" }],
            },
          },
        ],
      }),
    ],
  },
  "content-filter": {
    rules: [
      () =>
        refuse(400, "The response was filtered due to the prompt triggering the content management policy.", {
          type: null,
          param: "prompt",
          code: "content_filter",
        }),
    ],
  },
} satisfies Record<string, Accent | ((dialect: Dialect) => Accent)>;

export type TraitName = keyof typeof traits;

export function toAccent(name: TraitName, dialect: Dialect): Accent {
  const trait: Accent | ((dialect: Dialect) => Accent) = traits[name];
  return typeof trait === "function" ? trait(dialect) : trait;
}

/** Sends half of the answer, then an unusual finish reason. */
function endsWith(finish: string): Accent {
  return {
    toStream: (stream) => [
      ...firstHalf(stream),
      { type: "chunk", delta: {}, finish },
      { type: "raw", text: "data: [DONE]\n\n" },
    ],
  };
}

function thinks(toDelta: (text: string) => Fields): Accent {
  return {
    toAnswer: (answer, request) => ({ ...answer, thought: thinkAbout(request) }),
    toStream: ([first, ...rest], { thought }) => [
      ...(first ? [first] : []),
      ...split(thought).map((text): Sent => ({ type: "chunk", delta: { content: "", ...toDelta(text) } })),
      ...rest,
    ],
  };
}

function thinksInTags(tag: string): Accent {
  return {
    toAnswer: (answer, request) => ({
      ...answer,
      content: `<${tag}>\n${thinkAbout(request)}\n</${tag}>\n\n${answer.content}`,
    }),
  };
}

function withArguments(change: (values: Fields) => Fields): Accent {
  return { toAnswer: (answer) => changeArguments(answer, change) };
}

function changeArguments(answer: Answer, change: (values: Fields, tool: string) => Fields): Answer {
  const calls = answer.calls.map((call) => {
    const values: unknown = JSON.parse(call.arguments);
    return isRecord(values) ? { ...call, arguments: JSON.stringify(change(values, call.name)) } : call;
  });
  return { ...answer, calls };
}

export const TRAIT_NAMES = Object.keys(traits).filter(isTrait);

export function isTrait(name: string): name is TraitName {
  return Object.hasOwn(traits, name);
}
