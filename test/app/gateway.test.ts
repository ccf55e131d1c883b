import { expect, onTestFinished, test } from "vitest";
import { recordingLog, silent } from "../../lab/support/log.ts";
import { openGateway } from "../../src/app/gateway.ts";
import { start } from "../sandbox/sandbox.ts";
import { readConfig } from "../support/config.ts";
import { eventually } from "../support/eventually.ts";
import { refusal, startFaultServer } from "../support/fault-server.ts";

test("the service also checks the fallback model and the second gateway, but users see only the first gateway's state", async () => {
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

test("IMAGE_API decides which API the client uses for images", async () => {
  const server = await startFaultServer(refusal(404, "Not Found"));
  const given = { GATEWAY_BASE_URL: server.url, GATEWAY_API_KEY: "k", CHAT_MODEL: "m", IMAGE_MODEL: "painter" };
  const config = readConfig({ ...given, IMAGE_API: "images" });
  const options = { config, reachable: [], onProblem: () => {}, shared: undefined, log: silent };
  const { client, close } = await openGateway(options);
  onTestFinished(close);
  const { signal } = new AbortController();
  await client.generateImage({ model: "painter", prompt: "a fox" }, signal).catch(() => {});
  expect(new Set(server.received.map(({ path }) => path.replace(/^\/v1/, "")))).toEqual(
    new Set(["/images/generations"]),
  );
});
