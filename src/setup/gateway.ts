import type { SetupField, SetupStep, SetupTask, SetupWay } from "../port/setup.ts";

interface Preset {
  id: string;
  label: string;
  address: string;
  /** A key that is as good as any. */
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
        text: "Start Ollama, and fetch a model that calls tools: ollama pull qwen3",
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
        text: "Start the LiteLLM proxy, and make a virtual key, or take its master key.",
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
        text: "Start it with: vllm serve <model> --enable-auto-tool-choice --tool-call-parser <parser>. With --api-key, that is the key here.",
        link: { label: "vLLM: tool calling", url: "https://docs.vllm.ai/en/latest/features/tool_calling.html" },
      },
    ],
  },
  {
    id: "openrouter",
    label: "OpenRouter",
    address: "https://openrouter.ai/api",
    tasks: [{ text: "Make a key.", link: { label: "OpenRouter: keys", url: "https://openrouter.ai/settings/keys" } }],
  },
  {
    id: "openai",
    label: "OpenAI",
    address: "https://api.openai.com",
    tasks: [{ text: "Make a key.", link: { label: "OpenAI: keys", url: "https://platform.openai.com/api-keys" } }],
  },
  {
    id: "other",
    label: "Another one",
    address: "",
    tasks: [{ text: "Anything that offers POST /v1/chat/completions with streaming will do." }],
  },
];

/** The step of the gateway, with a way for each that is well known. */
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
      hint: key === undefined ? "Sent as Authorization: Bearer." : "It asks for none by itself, so any will do.",
      kind: "secret",
      sentTo: "GATEWAY_BASE_URL",
      ...(key !== undefined && { value: key }),
    },
    { name: "CHAT_MODEL", label: "Model that answers", hint: "One of those the gateway lists.", kind: "model" },
    {
      name: "IMAGE_MODEL",
      label: "Model that draws",
      hint: "Leave it empty if the gateway draws nothing. The check says how it is asked for pictures.",
      kind: "model",
      isOptional: true,
    },
  ];
  return { id, label, tasks, fields };
}
