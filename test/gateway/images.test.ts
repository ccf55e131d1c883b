import sharp from "sharp";
import { beforeAll, describe, expect, test } from "vitest";
import type { ImageRequest } from "../../src/gateway/image-request.ts";
import { type Answer, json, rateLimit, refusal, startFaultServer } from "../support/fault-server.ts";
import { connect, failureOf, KEY, open } from "../support/gateway-client.ts";
import { recordingLog } from "../support/log.ts";

const request: ImageRequest = { model: "vendor/draw", prompt: "a red square" };
const imageKeyHeader = "x-vendor-api-key";
let png: Buffer;

beforeAll(async () => {
  png = await sharp({ create: { width: 4, height: 4, channels: 3, background: "red" } })
    .png()
    .toBuffer();
});

const picture = (): Answer => (response, received) =>
  json(200, {
    candidates: [{ content: { parts: [{ inlineData: { mimeType: "image/jpeg", data: png.toString("base64") } }] } }],
  })(response, received);

/** Takes the key in the vendor's header only. */
const byHeader = (): Answer => (response, received) =>
  received.headers[imageKeyHeader] === KEY && received.headers.authorization === undefined
    ? picture()(response, received)
    : refusal(401, "no")(response, received);

describe("an image request", () => {
  test("is a POST on the model's path with the key as a Bearer", async () => {
    const { url, received } = await startFaultServer(picture());
    const image = await connect(url).generateImage(request, open);
    expect(received).toMatchObject([
      {
        method: "POST",
        path: "/v1beta/models/vendor%2Fdraw:generateContent",
        headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      },
    ]);
    expect(Buffer.from(image.bytes).equals(png)).toBe(true);
  });

  test("gives the type that the bytes have, whatever the gateway says", async () => {
    const { url } = await startFaultServer(picture());
    expect((await connect(url).generateImage(request, open)).mimeType).toBe("image/png");
  });

  test("is made again after a failure that passes", async () => {
    const { url, received } = await startFaultServer(refusal(503, "busy"), rateLimit(), picture());
    await connect(url).generateImage(request, open);
    expect(received).toHaveLength(3);
  });

  test("that breaks a rule is not sent", async () => {
    const { url, received } = await startFaultServer(picture());
    expect(await failureOf(connect(url).generateImage({ ...request, prompt: " " }, open))).toMatchObject({
      kind: "rejected",
    });
    expect(received).toEqual([]);
  });

  test("aborts with the signal's reason", async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    const { url, received } = await startFaultServer(() => arrive());
    const controller = new AbortController();
    const reason = new Error("stopped");
    const image = connect(url).generateImage(request, controller.signal);
    image.catch(() => {});
    await arrived;
    controller.abort(reason);
    await expect(image).rejects.toBe(reason);
    await received[0]?.closed;
  });

  test("is logged without its prompt", async () => {
    const { url } = await startFaultServer(picture());
    const { log, lines } = recordingLog();
    await connect(url, { log }).generateImage(request, open);
    expect(lines).toMatchObject([{ model: "vendor/draw", mimeType: "image/png", sizeBytes: png.length }]);
    expect(JSON.stringify(lines)).not.toContain("red square");
  });
});

describe("401 on the image endpoint", () => {
  test("is answered once with the key in the vendor's header, instead of the Bearer", async () => {
    const { url, received } = await startFaultServer(byHeader());
    await connect(url, { imageKeyHeader }).generateImage(request, open);
    expect(received.map(({ headers }) => [headers.authorization, headers[imageKeyHeader]])).toEqual([
      [`Bearer ${KEY}`, undefined],
      [undefined, KEY],
    ]);
  });

  test("is remembered: the next picture goes straight to the header", async () => {
    const { url, received } = await startFaultServer(byHeader());
    const gateway = connect(url, { imageKeyHeader });
    await gateway.generateImage(request, open);
    await gateway.generateImage(request, open);
    expect(received).toHaveLength(3);
  });

  test("twice is an error, without the key in it and without a third call", async () => {
    const { url, received } = await startFaultServer(refusal(401, `no ${KEY}`));
    const failure = await failureOf(connect(url, { imageKeyHeader }).generateImage(request, open));
    expect(failure).toMatchObject({ kind: "unauthorized", status: 401 });
    expect(failure.message).not.toContain(KEY);
    expect(received).toHaveLength(2);
  });

  test("with a remembered header is an error, and the next picture begins with the Bearer again", async () => {
    const { url, received } = await startFaultServer(refusal(401, "no"), picture(), refusal(401, "no"), picture());
    const gateway = connect(url, { imageKeyHeader });
    await gateway.generateImage(request, open);
    await failureOf(gateway.generateImage(request, open));
    await gateway.generateImage(request, open);
    expect(received.map(({ headers }) => headers.authorization === undefined)).toEqual([false, true, true, false]);
  });

  test("without a header to try says what to set", async () => {
    const { url, received } = await startFaultServer(refusal(401, "no"));
    const failure = await failureOf(connect(url).generateImage(request, open));
    expect(failure.message).toContain("GATEWAY_IMAGE_KEY_HEADER");
    expect(received).toHaveLength(1);
  });

  test("is the only status that is answered so", async () => {
    for (const status of [400, 403, 404]) {
      const { url, received } = await startFaultServer(refusal(status, "no"));
      await failureOf(connect(url, { imageKeyHeader }).generateImage(request, open));
      expect(received).toHaveLength(1);
    }
  });
});

test("A picture larger than pictures may be is refused while it comes", async () => {
  const data = Buffer.alloc(3_000_000).toString("base64");
  const { url } = await startFaultServer(json(200, { inlineData: { data } }));
  const failure = await failureOf(connect(url, { limits: { maxImageBytes: 1_000 } }).generateImage(request, open));
  expect(failure).toMatchObject({ kind: "malformed", message: expect.stringContaining("larger than") });
});
