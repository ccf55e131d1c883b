import type { SetupField, SetupStep, SetupTask, SetupWay } from "../port/setup.ts";

interface Preset {
  id: string;
  label: string;
  address: string;
  /** A suggested key for servers that accept any key. */
  key?: string;
  tasks: SetupTask[];
}

const PRESETS: readonly Preset[] = [
  {
    id: "ollama",
    label: "Ollama",
    address: "http://127.0.0.1:11434",
    key: "none",
    tasks: [
      {
        text: "Start Ollama with a context window large enough for Palaver's requests: OLLAMA_CONTEXT_LENGTH=32768 ollama serve. Ollama's default is often 4096, and it silently drops the rest.",
      },
      {
        text: "Pull a model that can call tools: ollama pull qwen3",
        link: { label: "Models of Ollama", url: "https://ollama.com/search?c=tools" },
      },
    ],
  },
  {
    id: "litellm",
    label: "LiteLLM",
    address: "http://127.0.0.1:4000",
    tasks: [
      {
        text: "Start the LiteLLM proxy and create a virtual key, or use its master key.",
        link: { label: "LiteLLM: virtual keys", url: "https://docs.litellm.ai/docs/proxy/virtual_keys" },
      },
    ],
  },
  {
    id: "vllm",
    label: "vLLM",
    address: "http://127.0.0.1:8000",
    key: "none",
    tasks: [
      {
        text: "Start it with: vllm serve <model> --enable-auto-tool-choice --tool-call-parser <parser>. If you start it with --api-key, enter that key here.",
        link: { label: "vLLM: tool calling", url: "https://docs.vllm.ai/en/latest/features/tool_calling.html" },
      },
    ],
  },
  {
    id: "openrouter",
    label: "OpenRouter",
    address: "https://openrouter.ai/api",
    tasks: [{ text: "Create a key.", link: { label: "OpenRouter: keys", url: "https://openrouter.ai/settings/keys" } }],
  },
  {
    id: "openai",
    label: "OpenAI",
    address: "https://api.openai.com",
    tasks: [{ text: "Create a key.", link: { label: "OpenAI: keys", url: "https://platform.openai.com/api-keys" } }],
  },
  {
    id: "other",
    label: "Another one",
    address: "",
    tasks: [
      {
        text: "Any server that offers POST /v1/chat/completions with streaming works. docs/gateway.md lists many, with their addresses and what works with each.",
      },
    ],
  },
];

/** The gateway's step, with one way for each well-known gateway. */
export const GATEWAY_STEP: SetupStep = {
  id: "gateway",
  name: "Gateway",
  title: "Connect a model",
  summary: "Real models answer instead of the sandbox.",
  ways: PRESETS.map(toWay),
};

function toWay({ id, label, address, key, tasks }: Preset): SetupWay {
  const fields: SetupField[] = [
    {
      name: "GATEWAY_BASE_URL",
      label: "Address",
      hint: "Up to but not including /v1.",
      kind: "address",
      ...(address !== "" && { value: address }),
    },
    {
      name: "GATEWAY_API_KEY",
      label: "Key",
      hint: key === undefined ? "The gateway's API key." : "It needs no key by default, so any word works.",
      kind: "secret",
      sentTo: "GATEWAY_BASE_URL",
      ...(key !== undefined && { value: key }),
    },
    { name: "CHAT_MODEL", label: "Model that answers", hint: "One that the gateway lists.", kind: "model" },
    {
      name: "IMAGE_MODEL",
      label: "Model that creates images",
      hint: "Only if the gateway can create images.",
      kind: "model",
      isOptional: true,
    },
  ];
  return { id, label, tasks, fields };
}
