import { describe, expect, test } from "vitest";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import { eventually } from "../../../support/eventually.ts";
import { finalDraft, growing, signal, startDesk, startWriting } from "../writing.ts";

const METHOD = "agents.sessions.setStatus";

describe("the session of an agent on Slack", () => {
  test("a session lasts while an answer grows, so Slack shows its Stop", async () => {
    const { slack, sink } = await startWriting();
    const { id } = await sink.post(growing("One"), "n", signal);
    await sink.edit(id, growing("One, two"), signal);
    await sink.edit(id, finalDraft("One, two."), signal);
    const said = () => slack.requests.filter(({ method }) => method === METHOD).map(({ args }) => args["status"]);
    await slack.until(() => said().length === 2, "both statuses");
    expect(said()).toEqual(["processing", "active"]);
  });

  test("a session starts before there is a message, and ends if none is posted", async () => {
    const { slack, sink } = await startWriting();
    await sink.progress("thinking", signal);
    const said = () => slack.requests.filter(({ method }) => method === METHOD).map(({ args }) => args["status"]);
    await slack.until(() => said().length === 1, "the beginning");
    await sink.progress("", signal);
    await slack.until(() => said().length === 2, "the end");
    expect(said()).toEqual(["processing", "active"]);
  });

  test("the adapter does not request a session again if the app is not an agent", async () => {
    const { slack, address, outbound, calls, api } = await startDesk();
    slack.failNext(METHOD, { error: "not_agent_app" });
    for (const nonce of ["a", "b"]) {
      const sink = outbound.sink(address, NO_RIGHT);
      const { id } = await sink.post(growing(nonce), nonce, signal);
      await slack.until(() => calls(METHOD) === 1, "the first status");
      await api.settled();
      await sink.edit(id, finalDraft(`${nonce}.`), signal);
    }
    await api.settled();
    expect(calls(METHOD)).toBe(1);
  });

  test.each([
    ["is no agent", { error: "not_agent_app" }, ["processing"]],
    [
      "does not hear of it",
      { isDone: true, warning: "missing_agent_session_stopped_event_subscription" },
      ["processing", "active"],
    ],
    ["asks too often", { retryAfterS: 30 }, ["processing"]],
  ])("Slack shows no Stop if the app %s, and the session still ends", async (_, fault, said) => {
    const { slack, sink, api, argsOf } = await startWriting();
    expect(sink.traits?.waits).toBe("late");
    slack.failNext(METHOD, fault);
    await sink.progress("thinking", signal);
    await eventually(() => sink.traits?.waits).toBe("soon");
    const { id } = await sink.post(finalDraft("One."), "n", signal);
    await sink.edit(id, finalDraft("Two."), signal);
    await eventually(() => argsOf(METHOD).map(({ status }) => status)).toEqual(said);
    await api.settled();
  });

  test("the adapter retries to end a session after a rate limit", async () => {
    const { slack, sink, argsOf } = await startWriting();
    const said = () => argsOf(METHOD).map(({ status }) => status);
    const { id } = await sink.post(growing("One"), "n", signal);
    await slack.until(() => said().length === 1, "the beginning");
    slack.failNext(METHOD, { retryAfterS: 1 });
    await sink.edit(id, finalDraft("One."), signal);
    await slack.until(() => said().length === 3, "the end, said once more");
    expect(said()).toEqual(["processing", "active", "active"]);
  });

  test("only the newest answer in a thread ends the session, even if an older answer has not ended it yet", async () => {
    const { slack, sink, outbound, address, api, argsOf } = await startWriting();
    const said = () => argsOf(METHOD).map(({ status }) => status);
    const { id } = await sink.post(growing("One"), "a", signal);
    await slack.until(() => said().length === 1, "the beginning");
    slack.failNext(METHOD, { retryAfterS: 1 });
    await sink.edit(id, finalDraft("One."), signal);
    await slack.until(() => said().length === 2, "the end that must wait");
    const next = outbound.sink(address, NO_RIGHT);
    const posted = await next.post(growing("Two"), "b", signal);
    await next.edit(posted.id, finalDraft("Two."), signal);
    await slack.until(() => said().length === 3, "the end of the next answer");
    await api.settled();
    expect(said()).toEqual(["processing", "active", "active"]);
  });

  test("the adapter starts no more sessions a minute than Slack allows", async () => {
    const { slack, address, outbound, calls, api } = await startDesk();
    const sinks = Array.from({ length: 40 }, () => outbound.sink(address, NO_RIGHT));
    for (const sink of sinks) await sink.progress("thinking", signal);
    await slack.until(() => calls(METHOD) === 22, "the sessions of a minute");
    expect(sinks.filter(({ traits }) => traits?.waits === "late")).toHaveLength(22);
    for (const sink of sinks) await sink.progress("", signal);
    await slack.until(() => calls(METHOD) === 44, "their ends");
    await api.settled();
    slack.assertClean();
  });

  test("a message that is posted and updated has no session", async () => {
    const { address, outbound, calls, api } = await startDesk();
    await outbound.sink(address, NO_RIGHT).post(finalDraft("One."), "n", signal);
    await api.settled();
    expect(calls(METHOD)).toBe(0);
  });
});
