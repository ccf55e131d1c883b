import { describe, expect, test } from "vitest";
import { growing, startDesk, whole } from "./writing.ts";

const signal = new AbortController().signal;
const METHOD = "agents.sessions.setStatus";

describe("an agent's session on Slack", () => {
  test("lasts as long as an answer grows, so that Slack shows its Stop", async () => {
    const { slack, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    const { id } = await sink.post(growing("One"), "n", signal);
    await sink.edit(id, growing("One, two"), signal);
    await sink.edit(id, whole("One, two."), signal);
    const said = () => slack.requests.filter(({ method }) => method === METHOD).map(({ args }) => args["status"]);
    await slack.until(() => said().length === 2, "both statuses");
    expect(said()).toEqual(["processing", "active"]);
  });

  test("is not asked for again where the app is no agent", async () => {
    const { slack, address, outbound, calls, api } = await startDesk();
    slack.failNext(METHOD, { error: "not_agent_app" });
    for (const nonce of ["a", "b"]) {
      const sink = outbound.sink(address);
      const { id } = await sink.post(growing(nonce), nonce, signal);
      await slack.until(() => calls(METHOD) === 1, "the first status");
      await api.settled();
      await sink.edit(id, whole(`${nonce}.`), signal);
    }
    await api.settled();
    expect(calls(METHOD)).toBe(1);
  });

  test("is no matter of a message that is written whole", async () => {
    const { address, outbound, calls, api } = await startDesk();
    await outbound.sink(address).post(whole("One."), "n", signal);
    await api.settled();
    expect(calls(METHOD)).toBe(0);
  });
});
