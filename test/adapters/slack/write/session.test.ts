import { describe, expect, test } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { finalDraft, growing, startDesk, startWriting } from "../writing.ts";

const signal = new AbortController().signal;
const METHOD = "agents.sessions.setStatus";

describe("an agent's session on Slack", () => {
  test("lasts as long as an answer grows, so that Slack shows its Stop", async () => {
    const { slack, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    const { id } = await sink.post(growing("One"), "n", signal);
    await sink.edit(id, growing("One, two"), signal);
    await sink.edit(id, finalDraft("One, two."), signal);
    const said = () => slack.requests.filter(({ method }) => method === METHOD).map(({ args }) => args["status"]);
    await slack.until(() => said().length === 2, "both statuses");
    expect(said()).toEqual(["processing", "active"]);
  });

  test("begins before there is a message, and ends where none came", async () => {
    const { slack, address, outbound } = await startDesk();
    const sink = outbound.sink(address);
    await sink.progress("thinking", signal);
    const said = () => slack.requests.filter(({ method }) => method === METHOD).map(({ args }) => args["status"]);
    await slack.until(() => said().length === 1, "the beginning");
    await sink.progress("", signal);
    await slack.until(() => said().length === 2, "the end");
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
  ])("brings no Stop of Slack's where the app %s, and is ended where it began", async (_, fault, said) => {
    const { slack, sink, api, argsOf } = await startWriting();
    expect(sink.hasOwnStop).toBe(true);
    slack.failNext(METHOD, fault);
    await sink.progress("thinking", signal);
    await eventually(() => sink.hasOwnStop).toBe(false);
    const { id } = await sink.post(finalDraft("One."), "n", signal);
    await sink.edit(id, finalDraft("Two."), signal);
    await eventually(() => argsOf(METHOD).map(({ status }) => status)).toEqual(said);
    await api.settled();
  });

  test("is ended a little later when Slack wants that to wait", async () => {
    const { slack, sink, argsOf } = await startWriting();
    const said = () => argsOf(METHOD).map(({ status }) => status);
    const { id } = await sink.post(growing("One"), "n", signal);
    await slack.until(() => said().length === 1, "the beginning");
    slack.failNext(METHOD, { retryAfterS: 1 });
    await sink.edit(id, finalDraft("One."), signal);
    await slack.until(() => said().length === 3, "the end, said once more");
    expect(said()).toEqual(["processing", "active", "active"]);
  });

  test("is ended by the newest answer alone, which may have begun in the meantime", async () => {
    const { slack, sink, outbound, address, api, argsOf } = await startWriting();
    const said = () => argsOf(METHOD).map(({ status }) => status);
    const { id } = await sink.post(growing("One"), "a", signal);
    await slack.until(() => said().length === 1, "the beginning");
    slack.failNext(METHOD, { retryAfterS: 1 });
    await sink.edit(id, finalDraft("One."), signal);
    await slack.until(() => said().length === 2, "the end that must wait");
    const next = outbound.sink(address);
    const posted = await next.post(growing("Two"), "b", signal);
    await next.edit(posted.id, finalDraft("Two."), signal);
    await slack.until(() => said().length === 3, "the end of the next answer");
    await api.settled();
    expect(said()).toEqual(["processing", "active", "active"]);
  });

  test("is not begun for more answers a minute than Slack takes calls for", async () => {
    const { slack, address, outbound, calls, api } = await startDesk();
    const sinks = Array.from({ length: 40 }, () => outbound.sink(address));
    for (const sink of sinks) await sink.progress("thinking", signal);
    await slack.until(() => calls(METHOD) === 22, "the sessions of a minute");
    expect(sinks.filter(({ hasOwnStop }) => hasOwnStop)).toHaveLength(22);
    for (const sink of sinks) await sink.progress("", signal);
    await slack.until(() => calls(METHOD) === 44, "their ends");
    await api.settled();
    slack.assertClean();
  });

  test("is not begun for a message that is posted and updated", async () => {
    const { address, outbound, calls, api } = await startDesk();
    await outbound.sink(address).post(finalDraft("One."), "n", signal);
    await api.settled();
    expect(calls(METHOD)).toBe(0);
  });
});
