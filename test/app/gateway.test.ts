import { expect, onTestFinished, test } from "vitest";
import { openGateway } from "../../src/app/gateway.ts";
import { readConfig } from "../../src/config/config.ts";
import { start } from "../sandbox/sandbox.ts";
import { eventually } from "../support/eventually.ts";
import { recordingLog } from "../support/log.ts";

test("the fallback model and the second gateway are looked at too, and people hear of the first gateway alone", async () => {
  const [first, second] = [await start(), await start()];
  const config = readConfig({
    GATEWAY_BASE_URL: first.url,
    GATEWAY_API_KEY: "sk-sandbox-all",
    CHAT_MODEL: "sandbox-chat",
    CHAT_FALLBACK_MODEL: "spare",
    GATEWAY_FALLBACK_BASE_URL: second.url,
    GATEWAY_FALLBACK_API_KEY: "sk-wrong",
  });
  const { log, lines } = recordingLog();
  const told: Array<string | undefined> = [];
  const gateway = await openGateway({
    config,
    reachable: [],
    onProblem: (problem) => void told.push(problem?.sentence),
    shared: undefined,
    log,
  });
  onTestFinished(gateway.close);
  for (const health of [gateway.health, gateway.secondHealth]) {
    health?.begin();
    onTestFinished(() => health?.close());
  }
  await eventually(() => [gateway.health?.state(), gateway.secondHealth?.state()]).toEqual([
    "unknown model",
    "key refused",
  ]);
  expect(told).toEqual([expect.stringMatching(/^CHAT_FALLBACK_MODEL spare/)]);
  const warned = lines.filter(({ level }) => level === 40).map(({ msg }) => String(msg));
  expect(warned.toSorted()).toEqual([
    expect.stringMatching(/^CHAT_FALLBACK_MODEL spare is not one of the models/),
    expect.stringMatching(/^Second gateway: .*Check GATEWAY_FALLBACK_API_KEY/),
  ]);
});
