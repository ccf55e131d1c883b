import { describe, expect, test } from "vitest";
import { createGateway } from "../../src/gateway/client.ts";
import { events, hanging, json, startFaultServer, stream, words } from "../support/fault-server.ts";
import { beginAnswer, connect, failureOf, KEY, open, readAnswer, request } from "../support/gateway-client.ts";
import { silent } from "../support/log.ts";

describe("createGateway", () => {
  test("takes a base address with or without a slash or a version", async () => {
    const { url, received } = await startFaultServer(events(stream("Hello")));
    for (const end of ["", "/", "/v1", "/v1/"]) await readAnswer(connect(`${url}${end}`), request, open);
    expect(received.map(({ path }) => path)).toEqual(Array.from({ length: 4 }, () => "/v1/chat/completions"));
  });

  test("refuses a key that cannot be a header, and does not repeat it", () => {
    for (const apiKey of ["", "two words", "line\r\nbreak", "schlüssel"]) {
      const create = () => createGateway({ baseUrl: "http://127.0.0.1", apiKey, log: silent });
      expect(create).toThrow(/^The gateway's key must be one word of plain ASCII characters\.$/);
    }
  });

  test("refuses a key header that is no header of a vendor", () => {
    for (const imageKeyHeader of ["authorization", "x-a b", "x-\r\n", ""]) {
      expect(() => createGateway({ baseUrl: "http://127.0.0.1", apiKey: KEY, imageKeyHeader, log: silent })).toThrow(
        "x- header",
      );
    }
  });

  test("ends running calls, and takes no others, when it is closed", async () => {
    const { url, received } = await startFaultServer(hanging(words("Hel")), json(200, []));
    const gateway = connect(url, { limits: { attempts: 1 } });
    const { first, end } = beginAnswer(gateway, request, open);
    await first;
    const failure = failureOf(end);
    await gateway.close();
    expect(await failure).toMatchObject({ kind: "interrupted" });
    await received[0]?.closed;
    expect(await failureOf(gateway.listModels(open))).toMatchObject({ kind: "unreachable" });
  });
});
