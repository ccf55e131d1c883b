import type { Dialect } from "../dialect.ts";
import { azure } from "./azure.ts";
import { deepseek } from "./deepseek.ts";
import { gemini } from "./gemini.ts";
import { gptOss } from "./gpt-oss.ts";
import { groq } from "./groq.ts";
import { kimi } from "./kimi.ts";
import { litellmAnthropic } from "./litellm-anthropic.ts";
import { litellmBedrock } from "./litellm-bedrock.ts";
import { llamaCpp } from "./llama-cpp.ts";
import { lmStudio } from "./lm-studio.ts";
import { mistral } from "./mistral.ts";
import { ollama } from "./ollama.ts";
import { openai } from "./openai.ts";
import { openrouter } from "./openrouter.ts";
import { perplexity } from "./perplexity.ts";
import { vertex } from "./vertex.ts";
import { vllmGemma } from "./vllm-gemma.ts";
import { vllmMistral } from "./vllm-mistral.ts";
import { xai } from "./xai.ts";

export const DIALECTS = {
  openai,
  azure,
  gemini,
  vertex,
  mistral,
  deepseek,
  kimi,
  xai,
  perplexity,
  groq,
  openrouter,
  "litellm-anthropic": litellmAnthropic,
  "litellm-bedrock": litellmBedrock,
  "vllm-gemma": vllmGemma,
  "vllm-mistral": vllmMistral,
  "llama-cpp": llamaCpp,
  ollama,
  "lm-studio": lmStudio,
  "gpt-oss": gptOss,
} satisfies Record<string, Dialect>;

export type DialectName = keyof typeof DIALECTS;

export const DIALECT_NAMES = Object.keys(DIALECTS).filter((name): name is DialectName => Object.hasOwn(DIALECTS, name));
