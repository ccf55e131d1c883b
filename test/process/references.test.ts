import sharp from "sharp";
import { describe, expect, onTestFinished, test } from "vitest";
import type { MessageRow } from "../../adapters/local/page/wire.ts";
import { makeDataDir, startService } from "../../lab/support/service.ts";
import { connectLocal, isFinal } from "../support/local-client.ts";

const isPicture = (message: MessageRow) => isFinal(message) && message.files.length > 0;

async function start() {
  const { path, remove } = await makeDataDir();
  onTestFinished(remove);
  const service = await startService(path, { LOG_LEVEL: "trace" });
  const client = await connectLocal(service.url);
  onTestFinished(async () => {
    client.close();
    await service.end("SIGTERM");
  });
  return { service, client };
}

describe("an image that the service creates from a private image without configuration", () => {
  test("the gateway creates an image from an attached image, through a link that no log shows", async () => {
    const { service, client } = await start();
    const webp = await sharp({ create: { width: 64, height: 64, channels: 3, background: "red" } })
      .webp()
      .toBuffer();
    const kept = await fetch(`${service.url}/local/files`, {
      method: "POST",
      headers: { origin: service.url, "x-file-name": "lies.png" },
      body: new Uint8Array(webp),
    });
    const { id } = (await kept.json()) as { id: string };
    await client.send("/imagine a cat", { fileIds: [id] });
    const picture = (await client.until((all) => all.some(isPicture))).find(isPicture);
    expect(picture?.text).toContain("1 reference picture");
    expect(service.lines.join("\n")).not.toContain("/relay/");
  });
});
