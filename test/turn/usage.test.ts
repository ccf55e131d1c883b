import { expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { message } from "../../lab/support/events.ts";
import { DONE, event, events, json, startFaultServer, stream } from "../support/fault-server.ts";
import { connect } from "../support/gateway-client.ts";

test("the token counts come from the gateway once the bot has learned to request token usage", async () => {
  const usage = { prompt_tokens: 1_234, completion_tokens: 56, total_tokens: 1_290 };
  const counted = stream("Hello.").replace(DONE, event({ choices: [], usage }) + DONE);
  const { url } = await startFaultServer((response, received) => {
    if (received.method === "GET") return json(404, {})(response, received);
    const { stream_options } = received.json as { stream_options?: { include_usage?: boolean } };
    return events(stream_options?.include_usage === true ? counted : stream("Hello."))(response, received);
  });
  const engine = startEngine({ gateway: connect(url), model: "m" });
  const seen: unknown[] = [];
  for (const question of ["Hi", "Hi again"]) {
    await engine.handle(message(question));
    const [row] = await engine.usage.readTable("everyone");
    seen.push([row?.promptTokens, row?.completionTokens, row?.estimatedTokens]);
  }
  const [estimated, both] = seen as [number[], number[]];
  expect(estimated[2]).toBe((estimated[0] ?? 0) + (estimated[1] ?? 0));
  expect(both).toEqual([(estimated[0] ?? 0) + 1_234, (estimated[1] ?? 0) + 56, estimated[2]]);
});
