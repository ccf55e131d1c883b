import { z } from "zod";
import { readBounded } from "../media/read-bounded.ts";
import type { Finding } from "../port/finding.ts";

const ASK_MS = 3_000;
const MAX_BYTES = 256 * 1024;
/** Tokens for everything besides the history: the system prompt, the tools' descriptions and the answer. */
const ROOM_BESIDES = 4_000;
const LARGE_ENOUGH = "Start Ollama with OLLAMA_CONTEXT_LENGTH=32768 if your machine has enough memory.";

const VERSION = z.object({ version: z.string() });
/** Ollama reports `context_length` since July 2025: https://github.com/ollama/ollama/pull/11331. */
const RUNNING = z.object({
  models: z.array(z.object({ name: z.string(), context_length: z.number().optional() })),
});

/**
 * Compares the model's context window in Ollama with the history that Palaver sends, because Ollama truncates longer
 * input without an error. Returns no findings for other gateways.
 */
export async function checkOllama(
  { baseUrl, model, historyMaxTokens }: { baseUrl: string; model: string; historyMaxTokens: number },
  signal: AbortSignal,
): Promise<Finding[]> {
  const ask = (path: string) => askJson(`${baseUrl}/api/${path}`, signal);
  if (!VERSION.safeParse(await ask("version")).success) return [];
  const { data } = RUNNING.safeParse(await ask("ps"));
  const names = [model, `${model}:latest`];
  const window = data?.models.find(({ name }) => names.includes(name))?.context_length;
  const needed = historyMaxTokens + ROOM_BESIDES;
  const [history, more] = [historyMaxTokens, ROOM_BESIDES].map((tokens) => tokens.toLocaleString("en-US"));
  const sends = `Palaver sends up to ${history} of conversation (HISTORY_MAX_TOKENS) and ${more} more`;
  if (window === undefined) {
    const what = `Ollama does not say how many tokens ${model} sees. ${sends}, and Ollama silently drops the rest.`;
    return [{ ok: true, what, fix: LARGE_ENOUGH }];
  }
  if (window >= needed) return [{ ok: true, what: `${model} sees ${window} tokens, which is enough.` }];
  const what = `${model} sees only ${window} tokens. ${sends}, and Ollama silently drops the rest.`;
  return [{ ok: false, what, fix: LARGE_ENOUGH }];
}

/** Resolves to undefined if no server responds with JSON. */
async function askJson(url: string, signal: AbortSignal): Promise<unknown> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]);
  try {
    const response = await fetch(url, { redirect: "manual", signal: bounded });
    if (!response.ok || response.body === null) return undefined;
    const body = await readBounded(response.body, { maxBytes: MAX_BYTES, share: { hold: () => true } }, bounded);
    return typeof body === "string" ? undefined : JSON.parse(new TextDecoder().decode(body));
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}
