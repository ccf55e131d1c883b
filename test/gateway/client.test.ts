import { describe, expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { createGateway, parseModelIds, readBaseUrl } from "../../src/gateway/client.ts";
import { createSafeText } from "../../src/gateway/safe-text.ts";
import { type Answer, body, good, hanging, json, startFaultServer, words } from "../support/fault-server.ts";
import { beginAnswer, connect, failureOf, KEY, open, readAnswer, request } from "../support/gateway-client.ts";

describe("createGateway", () => {
  test("the gateway refuses a key that cannot be a header, and the error does not contain the key", () => {
    for (const apiKey of ["", "two words", "line\r\nbreak", "schlüssel"]) {
      const create = () => createGateway({ baseUrl: "http://127.0.0.1", apiKey, log: silent });
      expect(create).toThrow(/^The gateway's key must be one word of plain ASCII characters\.$/);
    }
  });

  test("the gateway refuses a key header that is not a vendor's", () => {
    for (const imageKeyHeader of ["authorization", "x-a b", "x-\r\n", ""]) {
      expect(() => createGateway({ baseUrl: "http://127.0.0.1", apiKey: KEY, imageKeyHeader, log: silent })).toThrow(
        "x- header",
      );
    }
  });

  test("closing the gateway ends running calls and refuses others", async () => {
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

describe("the base URL of the gateway", () => {
  test("a base URL loses its slashes and version", () => {
    for (const end of ["", "/", "//", "/v1", "/v1/", "/v1//", "/v1beta", "/v1beta/"]) {
      expect(readBaseUrl(`https://gateway.example${end}`)).toBe("https://gateway.example");
      expect(readBaseUrl(`http://127.0.0.1:8787/proxy/ai${end}`)).toBe("http://127.0.0.1:8787/proxy/ai");
    }
  });

  test("a path that only resembles a version is kept", () => {
    expect(readBaseUrl("https://gateway.example/dev1")).toBe("https://gateway.example/dev1");
  });

  test("an address that is not http(s) is refused", () => {
    for (const text of ["", "gateway.example", "ftp://gateway.example", "file:///etc/passwd"]) {
      expect(() => readBaseUrl(text)).toThrow("must be an http:// or https:// URL");
    }
  });

  test("the gateway refuses secrets and queries in the base URL, and the error does not contain them", () => {
    for (const text of ["https://user:hunter2@gateway.example", "https://gateway.example/?key=hunter2"]) {
      expect(() => readBaseUrl(text)).toThrow(/^(?!.*hunter2).*must have no user, password, query or fragment/);
    }
  });
});

const safe = createSafeText([]);
const parse = (value: unknown): string[] => parseModelIds(JSON.stringify(value), safe);

describe("the model list", () => {
  test("the model list is requested with the key", async () => {
    const { url, received } = await startFaultServer(json(200, { object: "list", data: [{ id: "a" }, { id: "b" }] }));
    expect(await connect(url).listModels(open)).toEqual(["a", "b"]);
    expect(received).toMatchObject([
      { method: "GET", path: "/v1/models", headers: { authorization: `Bearer ${KEY}` }, json: undefined },
    ]);
  });

  test("the model list is understood in every common shape", () => {
    expect(parse({ data: [{ id: "a" }, { id: "b", name: "B" }] })).toEqual(["a", "b"]);
    expect(parse({ models: [{ name: "models/a" }, { id: "b" }] })).toEqual(["a", "b"]);
    expect(parse(["a", "b"])).toEqual(["a", "b"]);
    expect(parse([{ id: "a" }, { name: "b" }])).toEqual(["a", "b"]);
    expect(parse({ data: null, models: [{ model: "a" }] })).toEqual(["a"]);
    expect(parse({ data: [] })).toEqual([]);
  });

  test("the model list names each model once and drops models without an id", () => {
    expect(parse({ data: [{ id: "a" }, { id: "a" }, {}, null, 7, { id: "" }] })).toEqual(["a"]);
  });

  test("the model list is requested again after a temporary failure", async () => {
    const { url } = await startFaultServer(json(500, {}), json(200, ["a"]));
    expect(await connect(url).listModels(open)).toEqual(["a"]);
  });

  test("a model list that is not a list is malformed", async () => {
    for (const answer of [json(200, {}), body(200, "text/html", "<html></html>"), body(200, "text/plain", "")]) {
      const { url } = await startFaultServer(answer);
      expect(await failureOf(connect(url).listModels(open))).toMatchObject({ kind: "malformed" });
    }
  });

  test("an error object instead of a model list is reported", () => {
    expect(() => parse({ error: { message: "no list today" } })).toThrow("no list today");
  });
});

describe("a vendor's base address", () => {
  /** A server that has the chat path in one place only. Everything else is 404. */
  async function serveAt(place: string) {
    const nothing = body(404, "text/html", "<html>404</html>");
    const answer: Answer = (response, received) => (received.path === place ? good : nothing)(response, received);
    return startFaultServer(answer);
  }

  test.each([
    ["", "/v1/chat/completions", 1],
    ["/v1", "/v1/chat/completions", 1],
    ["/api/v1/", "/api/v1/chat/completions", 1],
    ["/v1beta/openai", "/v1beta/openai/chat/completions", 1],
    [
      "/v1/projects/p/locations/l/endpoints/openapi",
      "/v1/projects/p/locations/l/endpoints/openapi/chat/completions",
      1,
    ],
    ["/openai/v1", "/openai/v1/chat/completions", 1],
    ["", "/chat/completions", 2],
  ])("the base path %j leads to %s, and later requests go there at once", async (base, path, requests) => {
    const { url, received } = await serveAt(path);
    const gateway = connect(`${url}${base}`);
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: "Hello", error: undefined });
    expect(received).toHaveLength(requests);
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: "Hello", error: undefined });
    expect(received.at(-1)?.path).toBe(path);
    expect(received).toHaveLength(requests + 1);
  });

  test("the client does not try another address if the gateway says that the model is missing", async () => {
    const missing = { error: { code: "model_not_found", message: "The model `m` does not exist." } };
    const { url, received } = await startFaultServer(json(404, missing));
    const { error } = await readAnswer(connect(url), request, open);
    expect(error).toMatchObject({ kind: "rejected", status: 404, reason: "unknown-model" });
    expect(received).toHaveLength(1);
  });
});

test("the headers in GATEWAY_HEADERS go with every request and replace the client's headers of the same name", async () => {
  const { url, received } = await startFaultServer(good);
  const gateway = connect(url, { headers: { "x-portkey-provider": "openai", authorization: "Token t" } });
  await readAnswer(gateway, request, open);
  expect(received[0]?.headers).toMatchObject({ "x-portkey-provider": "openai", authorization: "Token t" });
});
