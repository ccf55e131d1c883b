import { describe, expect, test } from "vitest";
import { parseModelIds } from "../../src/gateway/models.ts";
import { createSafeText } from "../../src/gateway/safe-text.ts";
import { body, json, startFaultServer } from "../support/fault-server.ts";
import { connect, failureOf, KEY, open } from "../support/gateway-client.ts";

const safe = createSafeText([]);
const parse = (value: unknown): string[] => parseModelIds(JSON.stringify(value), safe);

describe("the model list", () => {
  test("is asked for with the key", async () => {
    const { url, received } = await startFaultServer(json(200, { object: "list", data: [{ id: "a" }, { id: "b" }] }));
    expect(await connect(url).listModels(open)).toEqual(["a", "b"]);
    expect(received).toMatchObject([
      { method: "GET", path: "/v1/models", headers: { authorization: `Bearer ${KEY}` }, json: undefined },
    ]);
  });

  test("is understood in every shape in use", () => {
    expect(parse({ data: [{ id: "a" }, { id: "b", name: "B" }] })).toEqual(["a", "b"]);
    expect(parse({ models: [{ name: "models/a" }, { id: "b" }] })).toEqual(["a", "b"]);
    expect(parse(["a", "b"])).toEqual(["a", "b"]);
    expect(parse([{ id: "a" }, { name: "b" }])).toEqual(["a", "b"]);
    expect(parse({ data: null, models: [{ model: "a" }] })).toEqual(["a"]);
    expect(parse({ data: [] })).toEqual([]);
  });

  test("names each model once and leaves out what has no id", () => {
    expect(parse({ data: [{ id: "a" }, { id: "a" }, {}, null, 7, { id: "" }] })).toEqual(["a"]);
  });

  test("is asked for again after a failure that passes", async () => {
    const { url } = await startFaultServer(json(500, {}), json(200, ["a"]));
    expect(await connect(url).listModels(open)).toEqual(["a"]);
  });

  test("that is no list is malformed", async () => {
    for (const answer of [json(200, {}), body(200, "text/html", "<html></html>"), body(200, "text/plain", "")]) {
      const { url } = await startFaultServer(answer);
      expect(await failureOf(connect(url).listModels(open))).toMatchObject({ kind: "malformed" });
    }
  });

  test("that is an error object says so", () => {
    expect(() => parse({ error: { message: "no list today" } })).toThrow("no list today");
  });
});
