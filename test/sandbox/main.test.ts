import { describe, expect, onTestFinished, test } from "vitest";
import { runGateway } from "../../src/sandbox/main.ts";
import { picture, post, serveFiles } from "./sandbox.ts";

describe("npm run gateway", () => {
  test("npm run gateway listens on loopback and prints its address, its keys and their models", async () => {
    const lines: string[] = [];
    const sandbox = await runGateway({ GATEWAY_PORT: "0", LOG_LEVEL: "silent" }, (line) => lines.push(line));
    try {
      expect(lines[0]).toBe(`The sandbox gateway listens on ${sandbox.url}`);
      expect(sandbox.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
      expect(lines.join("\n")).toMatch(
        /sk-sandbox-all .*sandbox-image\n.*sk-sandbox-chat .*sandbox-text\n.*sk-sandbox-header .*x-sandbox-api-key/,
      );
      expect((await fetch(`${sandbox.url}/healthz`)).status).toBe(200);
    } finally {
      await sandbox.close();
    }
  });

  test("npm run gateway fetches references from the service at its port, and from no other port of this machine", async () => {
    const png = await picture("red");
    const service = await serveFiles({ "/a.png": png });
    const other = await serveFiles({ "/a.png": png });
    const { port } = new URL(service);
    const sandbox = await runGateway({ GATEWAY_PORT: "0", LOG_LEVEL: "silent", PORT: port }, () => {});
    onTestFinished(() => sandbox.close());
    const statusOf = async (fileUri: string) => {
      const parts = [{ text: "a cat" }, { fileData: { mimeType: "image/png", fileUri } }];
      const url = `${sandbox.url}/v1beta/models/sandbox-image:generateContent`;
      return (await post(url, { contents: [{ parts }] })).status;
    };
    expect(await statusOf(`${service}/a.png`)).toBe(200);
    expect(await statusOf(`${other}/a.png`)).toBe(400);
  });

  test("npm run gateway refuses an unknown LOG_LEVEL in plain words, and ignores an empty one", async () => {
    await expect(runGateway({ GATEWAY_PORT: "0", LOG_LEVEL: "loud" }, () => {})).rejects.toThrow(
      'LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "loud".',
    );
    const sandbox = await runGateway({ GATEWAY_PORT: "0", LOG_LEVEL: "" }, () => {});
    await sandbox.close();
  });

  test.each(["x", "70000", "-1", "1.5"])("npm run gateway refuses GATEWAY_PORT=%s in plain words", async (port) => {
    await expect(runGateway({ GATEWAY_PORT: port, LOG_LEVEL: "silent" }, () => {})).rejects.toThrow(
      `GATEWAY_PORT must be a port between 0 and 65535, not "${port}".`,
    );
  });
});
