import { describe, expect, test } from "vitest";
import { MAX_BODY_BYTES } from "../../src/sandbox/json-body.ts";
import { ask, contentOf, JSON_HEADERS, post, refusalOf, start } from "./sandbox.ts";

describe("the body of a request to the sandbox", () => {
  test.each([
    ["text/plain", 415],
    ["application/x-www-form-urlencoded", 415],
    ["application/json; charset=latin1", 415],
    ["application/json; charset=utf-8", 200],
    ["application/json;charset=UTF8", 200],
    ["Application/JSON", 200],
  ])("the sandbox answers Content-Type %s with %i", async (type, status) => {
    const sandbox = await start();
    const response = await ask(sandbox, "hi", {}, { "content-type": type });
    expect(response.status).toBe(status);
  });

  test("the sandbox refuses a missing content type and a compressed body", async () => {
    const sandbox = await start();
    const url = `${sandbox.url}/v1/chat/completions`;
    const bare = fetch(url, {
      method: "POST",
      headers: { authorization: JSON_HEADERS.authorization },
      body: new Uint8Array([123, 125]),
    });
    expect(await refusalOf(bare)).toMatchObject({ status: 415, code: "unsupported_content_type" });
    expect(await refusalOf(post(url, "{}", { "content-encoding": "gzip" }))).toMatchObject({
      status: 415,
      code: "unsupported_content_encoding",
    });
  });

  test.each([
    ["", "invalid_json"],
    ["{", "invalid_json"],
    ["{}x", "invalid_json"],
    ["[]", "invalid_type"],
    ["null", "invalid_type"],
    ["7", "invalid_type"],
    ['"text"', "invalid_type"],
  ])("the sandbox refuses the body %j", async (body, code) => {
    const sandbox = await start();
    const refusal = await refusalOf(post(`${sandbox.url}/v1/chat/completions`, body));
    expect(refusal).toMatchObject({ status: 400, type: "invalid_request_error", code, param: null });
  });

  test("the sandbox refuses bytes that are not UTF-8", async () => {
    const sandbox = await start();
    const body = Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    const refusal = await refusalOf(
      fetch(`${sandbox.url}/v1/chat/completions`, { method: "POST", headers: JSON_HEADERS, body }),
    );
    expect(refusal).toMatchObject({ status: 400, code: "invalid_json" });
  });

  test("the sandbox answers a body above the limit with 413, with or without a declared length", async () => {
    const sandbox = await start();
    const url = `${sandbox.url}/v1/chat/completions`;
    const large = Buffer.alloc(MAX_BODY_BYTES + 1, 32);
    const told = fetch(url, { method: "POST", headers: JSON_HEADERS, body: large });
    expect(await refusalOf(told)).toMatchObject({ status: 413, code: "request_too_large" });

    const parts = async function* () {
      for (let sent = 0; sent < large.length; sent += 1 << 20) yield large.subarray(sent, sent + (1 << 20));
    };
    const init = {
      method: "POST",
      headers: JSON_HEADERS,
      body: ReadableStream.from(parts()),
      duplex: "half",
    } as RequestInit;
    expect(await refusalOf(fetch(url, init))).toMatchObject({ status: 413, code: "request_too_large" });
    expect(await contentOf(ask(sandbox, "say: still here"))).toBe("still here");
  });
});
