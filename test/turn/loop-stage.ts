import type { Gateway } from "../../src/gateway/client.ts";
import type { Tool } from "../../src/tools/tool.ts";
import type { TurnDeps } from "../../src/turn/model-loop.ts";

/** A turn's surroundings that allow everything and record nothing. */
export function loopDeps(gateway: Gateway, tool: Tool, ledger: TurnDeps["ledger"]): TurnDeps {
  return {
    gateway,
    tools: [tool],
    model: "fake",
    fields: {},
    mustAsk: false,
    maxRounds: 4,
    context: { conversationId: "test:a" },
    ledger,
    isAllowed: async () => false,
    user: "someone",
    onStep: () => {},
    onReasoning: () => {},
    onRetry: () => {},
    reserve: async () => ({ maxTokens: undefined, settle: () => {} }),
    onFallback: () => {},
    onAdapted: () => {},
    showPictures: async () => {},
    onCited() {},
    mayAsk: () => true,
  };
}
