import type { OnText } from "../reply/reply.ts";
import type { AnswerOptions } from "../settings/answer-options.ts";
import type { ChannelSettings } from "../settings/settings.ts";
import type { TurnDeps } from "./turn.ts";

const ONLY_JSON = "Answer with one JSON object and nothing else.";

/** Many models give JSON only where they are told so in words as well. */
export function toSystemPrompt({ persona, options }: ChannelSettings, usual: string): string {
  const prompt = persona ?? usual;
  return options?.format === "json" ? `${prompt}\n\n${ONLY_JSON}` : prompt;
}

/** Shows JSON as code, in which Markdown changes nothing; an answer that is none stays as it is. */
export function createJsonCode(onText: OnText): { write: OnText; end(): void } {
  let isCode: boolean | undefined;
  return {
    write(text) {
      if (isCode === undefined && text.trim() !== "") {
        isCode = /^\s*[[{]/.test(text);
        if (isCode) onText("```json\n");
      }
      onText(text);
    },
    end() {
      if (isCode === true) onText("\n```");
    },
  };
}

/** The fields of a request that a channel's options set. */
export function toFields({ temperature, maxTokens, format }: AnswerOptions): TurnDeps["fields"] {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(format !== undefined && { response_format: { type: "json_object" } }),
  };
}
