import type { TokenUsage } from "../gateway/chunks.ts";
import { GatewayError, isUnsent, isUnspent } from "../gateway/errors.ts";
import type { Actor } from "../port/catalogue.ts";
import type { EventBase } from "../port/events.ts";
import type { Unspent } from "../quota/cost.ts";
import { QuotaError } from "../quota/quota.ts";
import type { Services } from "../services/services.ts";
import { estimateTokens } from "../turn/context.ts";

const NO_ANSWER =
  "The AI service isn't responding, so I couldn't finish the summary. Try `/catchup` again in a minute.";
const NO_MODEL = "You're not allowed to use a model here, so I can't write a summary.";

/** The model gave no answer. The message is a sentence for the asker. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** Asks the model once, at the asker's expense. Rejects with a `NoAnswer`, or with the signal's reason. */
export type AskModel = (system: string, text: string, maxTokens: number, signal: AbortSignal) => Promise<string>;

/** Makes a function for the requests of one command. Each is reserved from the asker's quota and counted. */
export async function createAskModel(deps: Services, event: EventBase): Promise<AskModel> {
  const { gateway, quota, settings, models, access, metrics, pseudonym, log } = deps;
  const { author, reply, key } = event;
  const by: Actor = { author, reply };
  const judge = await access.judge();
  const mayAsk = (model: string) => judge(by, `model:${model}`).isAllowed;
  const chosen = await models.choose((await settings.read(reply)).model, by);
  const model = [chosen.model, models.usual(by)].find(mayAsk);
  const user = pseudonym(reply.platform, author.id);
  let number = 0;

  async function ask(system: string, text: string, maxTokens: number, signal: AbortSignal): Promise<string> {
    if (model === undefined) throw new NoAnswer(NO_MODEL);
    const promptTokens = estimateTokens(system) + estimateTokens(text);
    const need = { id: `${key}:catchup:${++number}`, by: { ...by, model }, promptTokens, maxTokens };
    const reservation = await quota.reserve(need, signal);
    let answer = "";
    let usage: TokenUsage | undefined;
    let answering = model;
    let unspent: Unspent | undefined;
    try {
      await gateway.streamChat(
        {
          model,
          max_tokens: Math.min(maxTokens, reservation.maxTokens ?? maxTokens),
          messages: [
            { role: "system", content: system },
            { role: "user", content: text },
          ],
          user,
        },
        signal,
        {
          mayAsk,
          onRetry: () => void (answer = ""),
          onFallback(fallback) {
            answering = fallback?.model ?? model;
            answer = "";
          },
          onChunk(chunk) {
            usage = chunk.usage ?? usage;
            answer += chunk.choices[0]?.delta.content ?? "";
          },
        },
      );
      return answer;
    } catch (error) {
      if (answer === "" && isUnspent(error)) unspent = isUnsent(error) ? "unsent" : "refused";
      throw error;
    } finally {
      const completionTokens = usage?.completion_tokens ?? estimateTokens(answer);
      const spent = {
        promptTokens: usage?.prompt_tokens ?? promptTokens,
        cachedTokens: usage?.cached_tokens,
        completionTokens,
        isEstimated: usage === undefined,
        model: answering,
        cost: usage?.cost,
      };
      if (unspent === undefined) {
        metrics.tokens("prompt", spent.promptTokens, spent.isEstimated);
        metrics.tokens("completion", completionTokens, spent.isEstimated);
      }
      await reservation.settle(unspent ?? spent);
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
