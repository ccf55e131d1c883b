import { expect, test } from "vitest";
import type { ChatRequest } from "../../src/gateway/chunks.ts";
import type { Gateway, StreamOptions } from "../../src/gateway/client.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { withOptionalPart } from "../../src/gateway/optional-part.ts";
import { createLogger } from "../../src/log/log.ts";
import { ignoring, open } from "../support/gateway-client.ts";

const log = createLogger({ level: "silent", secrets: [] });
const part = {
  isIn: ({ stop }: ChatRequest) => stop !== undefined,
  without: ({ stop: _stop, ...plain }: ChatRequest) => plain,
  param: /^stop$/,
  code: /stop_not_supported/,
  message: /no stop here/,
  notice: "without",
};
const request: ChatRequest = { model: "m", messages: [{ role: "user", content: "hi" }], stop: ["x"] };

/** A gateway that refuses what `refuse` says, and tells what it was asked. */
function setUp(refuse: (request: ChatRequest) => GatewayError | undefined) {
  const asked: ChatRequest[] = [];
  const gateway = {
    async streamChat(request: ChatRequest, _signal: AbortSignal, { onChunk }: StreamOptions) {
      asked.push(request);
      const refusal = refuse(request);
      if (refusal !== undefined) throw refusal;
      onChunk({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [] });
    },
  } as unknown as Gateway;
  const wrapped = withOptionalPart(gateway, part, log);
  const ask = () => wrapped.streamChat(request, open, ignoring);
  return { asked, ask };
}

test("a request goes as it is to a model that takes the part", async () => {
  const { asked, ask } = setUp(() => undefined);
  await ask();
  expect(asked).toEqual([request]);
});

test("a model that refuses the part is asked without it, and from then on without it at once", async () => {
  const { asked, ask } = setUp(({ stop }) =>
    stop === undefined
      ? undefined
      : new GatewayError("rejected", "no", { status: 400, param: "stop", code: "unsupported_value" }),
  );
  await ask();
  await ask();
  expect(asked.map(({ stop }) => stop)).toEqual([["x"], undefined, undefined]);
});

test("what is refused without the part as well was not refused because of it", async () => {
  const { asked, ask } = setUp(() => new GatewayError("rejected", "no stop here", { status: 400 }));
  await expect(ask()).rejects.toThrow();
  await expect(ask()).rejects.toThrow();
  expect(asked.map(({ stop }) => stop)).toEqual([["x"], undefined, ["x"], undefined]);
});

test("another refusal is nobody's business here", async () => {
  const { asked, ask } = setUp(() => new GatewayError("rejected", "no", { status: 400, param: "messages" }));
  await expect(ask()).rejects.toThrow("no");
  expect(asked).toHaveLength(1);
});
