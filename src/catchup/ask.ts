import type { ChatCompletionChunk, ChatMessage } from "../gateway/chunks.ts";
import { GatewayError } from "../gateway/errors.ts";
import type { Actor } from "../port/catalogue.ts";
import type { EventBase, ReadablePlace } from "../port/events.ts";
import { QuotaError } from "../quota/quota.ts";
import type { Services } from "../services/services.ts";
import { estimateTokens } from "../turn/context.ts";
import { streamPaid } from "../turn/model-loop.ts";
import { createSpending } from "../turn/prepare.ts";

const NO_ANSWER =
  "The AI service isn't responding, so I couldn't finish the summary. Try `/catchup` again in a minute.";
const NO_MODEL = "You're not allowed to use a model here, so I can't write a summary.";

/** The model gave no answer. The message is a sentence for the asker. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** Asks the model once, at the asker's expense. Rejects with a `NoAnswer`, or with the signal's reason. */
export type AskModel = (system: string, text: string, maxTokens: number, signal: AbortSignal) => Promise<string>;

/** The model that answers in the asker's channel. */
export interface ModelChoice {
  /** Undefined if the asker can use none. */
  model: string | undefined;
  /** True if the asker can chat in this place, and use the model there; without a model, the chosen one. */
  mayAsk(place: ReadablePlace, model?: string): boolean;
}

export async function chooseModel(
  { settings, models, access }: Pick<Services, "settings" | "models" | "access">,
  { author, reply }: Actor,
): Promise<ModelChoice> {
  const by = { author, reply };
  const judge = await access.judge();
  const chosen = await models.choose((await settings.read(reply)).model, by);
  const usable = [chosen.model, models.usual(by)].find((model) => judge(by, `model:${model}`).isAllowed);
  return {
    model: usable,
    mayAsk({ channelId, categoryId }, model = usable) {
      const { threadId: _threadId, categoryId: _categoryId, ...rest } = reply;
      const there = { author, reply: { ...rest, channelId, ...(categoryId !== undefined && { categoryId }) } };
      if (!judge(there, "chat").isAllowed) return false;
      return model === undefined || (judge(there, `model:${model}`).isAllowed && models.isOffered(model, there));
    },
  };
}

/**
 * Makes a function for the requests of one command. Each is reserved from the asker's quota and counted. Another model
 * answers instead only if it is allowed in all these places.
 */
export function createAskModel(
  deps: Services,
  { key, author, reply }: EventBase,
  { model, mayAsk }: ModelChoice,
  places: readonly ReadablePlace[],
): AskModel {
  const { gateway, pseudonym, log } = deps;
  const user = pseudonym(reply.platform, author.id);
  let number = 0;

  async function ask(system: string, text: string, maxTokens: number, signal: AbortSignal): Promise<string> {
    if (model === undefined) throw new NoAnswer(NO_MODEL);
    const spending = createSpending(deps, { id: `${key}:catchup`, edition: 1, author, reply }, { model, maxTokens });
    const promptTokens = estimateTokens(system) + estimateTokens(text);
    const need = { number: ++number, promptTokens };
    let answer = "";
    const paid = {
      gateway,
      reserve: (until: AbortSignal) => spending.reserve(need, until),
      estimate() {
        const completion = estimateTokens(answer);
        return {
          prompt_tokens: promptTokens,
          completion_tokens: completion,
          total_tokens: promptTokens + completion,
        };
      },
      isAnswer: () => false,
    };
    const restart = () => void (answer = "");
    const options = {
      mayAsk: (fallback: string) => places.every((place) => mayAsk(place, fallback)),
      onRetry: restart,
      onFallback: restart,
      onChunk: ({ choices }: ChatCompletionChunk) => void (answer += choices[0]?.delta.content ?? ""),
    };
    const messages: ChatMessage[] = [
      { role: "system", content: system },
      { role: "user", content: text },
    ];
    try {
      await streamPaid({ model, max_tokens: maxTokens, messages, user }, paid, options, signal);
      return answer;
    } finally {
      await spending.settled();
    }
  }

  return async (system, text, maxTokens, signal) => {
    try {
      return await ask(system, text, maxTokens, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof QuotaError || error instanceof NoAnswer) throw new NoAnswer(error.message);
      if (!(error instanceof GatewayError)) throw error;
      log.warn({ err: error }, "the model did not summarise what a person has missed");
      throw new NoAnswer(NO_ANSWER);
    }
  };
}
