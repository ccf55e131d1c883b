import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { createOutbound } from "../../../../adapters/slack/write/outbound.ts";
import type { ReplyAddress } from "../../../../src/port/events.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import { type Desk, finalDraft, growing, MARK_KEY, RETRY, signal, startDesk } from "../writing.ts";

/** The address for an ephemeral answer to Ada, with the fields of a command. */
async function startEphemeral(hasUrl = true): Promise<Desk & { address: ReplyAddress; shown(): string[] }> {
  const desk = await startDesk();
  const { slack, ada, general, address } = desk;
  let responseUrl: string | undefined;
  if (hasUrl) {
    const commanding = ada.command("/ask", "something", general);
    const delivery = await slack.until(() => slack.deliveries.at(-1), "the command");
    responseUrl = String((delivery as { payload?: Record<string, unknown> }).payload?.["response_url"]);
    void commanding;
  }
  const { threadId: _, ...outside } = address;
  const extra = { ...address.extra, ...(responseUrl !== undefined && { responseUrl }) };
  return {
    ...desk,
    address: { ...outside, visibleTo: ada.id, extra },
    shown: () => slack.ephemerals(general, ada.id).map(({ shown }) => shown),
  };
}

describe("an answer on Slack that one person sees", () => {
  test("an ephemeral answer grows in one message, and uses at most the five responses of a command", async () => {
    const { slack, general, address, outbound, shown } = await startEphemeral();
    const sink = outbound.sink(address, NO_RIGHT);
    const { id } = await sink.post(growing("1"), "n", signal);
    for (const text of ["1 2", "1 2 3", "1 2 3 4", "1 2 3 4 5", "1 2 3 4 5 6"]) {
      await sink.edit(id, growing(text), signal);
    }
    await sink.edit(id, finalDraft("1 2 3 4 5 6 7", [RETRY]), signal);
    expect(shown()).toEqual(["1 2 3 4 5 6 7"]);
    expect(slack.answers(general)).toEqual([]);
  });

  test("the adapter posts an ephemeral answer if the command accepts no more responses", async () => {
    const { slack, address, outbound, shown } = await startEphemeral();
    slack.advance(31 * 60_000);
    await outbound.sink(address, NO_RIGHT).post(finalDraft("Late."), "n", signal);
    expect(shown()).toEqual(["Late."]);
  });

  test("the adapter posts an ephemeral answer without a response URL once, when the answer is complete", async () => {
    const { address, outbound, shown } = await startEphemeral(false);
    const sink = outbound.sink(address, NO_RIGHT);
    const { id } = await sink.post(growing("1"), "n", signal);
    await sink.edit(id, growing("1 2"), signal);
    expect(shown()).toEqual([]);
    await sink.edit(id, finalDraft("1 2 3"), signal);
    expect(shown()).toEqual(["1 2 3"]);
  });

  test("an ephemeral answer is an ordinary message in a direct conversation", async () => {
    const { slack, ada, address, outbound, shown } = await startEphemeral(false);
    const direct = ada.direct();
    await outbound.sink({ ...address, channelId: direct.id }, NO_RIGHT).post(finalDraft("For you."), "n", signal);
    expect(slack.texts(direct)).toEqual(["For you."]);
    expect([...shown(), ...slack.ephemerals(direct)]).toEqual([]);
  });

  test("an ephemeral answer notifies no one", async () => {
    const { slack, address, outbound } = await startEphemeral();
    await outbound.sink(address, NO_RIGHT).post(finalDraft("<!channel> <@U012>"), "n", signal);
    expect(slack.pings).toEqual([]);
  });

  test("the adapter can remove an ephemeral answer", async () => {
    const { address, outbound, shown } = await startEphemeral();
    const sink = outbound.sink(address, NO_RIGHT);
    const { id } = await sink.post(finalDraft("Never mind."), "n", signal);
    await sink.remove(id, signal);
    expect(shown()).toEqual([]);
  });

  test.each(["https://example.com/hook", "no address"])(
    "the adapter posts an ephemeral answer if the command's address is not Slack's: %s",
    async (responseUrl) => {
      const { address, outbound, shown, calls } = await startEphemeral(false);
      const sink = outbound.sink({ ...address, extra: { ...address.extra, responseUrl } }, NO_RIGHT);
      await sink.post(finalDraft("For you."), "n", signal);
      expect(shown()).toEqual(["For you."]);
      expect(calls("chat.postEphemeral")).toBe(1);
    },
  );

  test("no error contains the address of an ephemeral answer", async () => {
    const { slack, address, outbound } = await startEphemeral();
    const sink = outbound.sink(address, NO_RIGHT);
    await slack.close();
    const failure = await sink.post(finalDraft("x"), "n", signal).catch((error: unknown) => error);
    expect(failure).toMatchObject({ kind: "unavailable" });
    expect(JSON.stringify([String(failure), (failure as Error).cause])).not.toContain("/response/");
  });

  describe("responses through a response URL", () => {
    /** A server that imitates Slack's response URLs and sends these responses in turn. */
    async function startHook(...answers: { status: number; body?: string; headers?: Record<string, string> }[]) {
      const said: string[] = [];
      const serve = async (request: IncomingMessage, response: ServerResponse) => {
        const { text: words } = (await json(request)) as { text: string };
        const { status, body = "", headers = {} } = answers[said.push(words) - 1] ?? { status: 200, body: "ok" };
        response.writeHead(status, headers).end(body);
      };
      const server = createServer((request, response) => void serve(request, response));
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      onTestFinished(() => void server.close());
      const desk = await startEphemeral(false);
      const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const { api, workspaces, slack, address } = desk;
      const outbound = createOutbound({ api, workspaces, markKey: MARK_KEY, apiUrl, now: slack.now });
      const extra = { ...address.extra, responseUrl: `${apiUrl}/response/1` };
      const sink = outbound.sink({ ...address, extra }, NO_RIGHT);
      return { ...desk, said, post: () => sink.post(finalDraft("For you."), "n", signal) };
    }
    const asJson = { "content-type": "application/json" };

    test("after a rate limit of the response URL, the adapter sends the answer when the wait is over", async () => {
      const body = '{"ok":false,"error":"ratelimited"}';
      const { post, said } = await startHook({ status: 429, body, headers: { ...asJson, "retry-after": "7" } });
      await expect(post()).rejects.toMatchObject({ kind: "rate-limited", retryAfterMs: 7_000 });
      await post();
      expect(said).toEqual(["For you.", "For you."]);
    });

    test("after a server error of the response URL, the adapter can send the answer again", async () => {
      const { post } = await startHook({ status: 500, body: '{"ok":false,"error":"server_error"}', headers: asJson });
      await expect(post()).rejects.toMatchObject({ kind: "unavailable" });
    });

    test.each([201, 204])(
      "after the status %i, which means the same as 200, the adapter shows nothing twice",
      async (status) => {
        const { post, calls } = await startHook({ status });
        await post();
        expect(calls("chat.postEphemeral")).toBe(0);
      },
    );

    test("after a refusal with status 200, the adapter posts the answer", async () => {
      const { post, shown } = await startHook({
        status: 200,
        body: '{"ok": false, "error": "no_text"}',
        headers: asJson,
      });
      await post();
      expect(shown()).toEqual(["For you."]);
    });
  });
});
