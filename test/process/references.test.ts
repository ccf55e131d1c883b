import { randomUUID } from "node:crypto";
import sharp from "sharp";
import { describe, expect, onTestFinished, test } from "vitest";
import type { MessageRow } from "../../adapters/local/page/wire.ts";
import { connectLocal, isFinal } from "../support/local-client.ts";
import { makeDataDir, startService } from "../support/service.ts";

const isPicture = (message: MessageRow) => isFinal(message) && message.files.length > 0;

/** The service as it starts without any configuration, and somebody at its page. */
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

describe("a private picture is drawn from out of the box", () => {
  test("when somebody attaches it, under a link that no log shows", async () => {
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

  test("when the bot drew it itself", async () => {
    const { service, client } = await start();
    await client.send("/imagine a cat");
    // What says that it is being drawn goes away once everything about the picture is kept.
    const isOver = (all: MessageRow[]) => all.some(isPicture) && !all.some(({ text }) => text.startsWith("Drawing"));
    const first = (await client.until(isOver)).find(isPicture);
    const turnId = first?.buttons.find(({ action }) => action === "vary")?.turnId;
    const pressed = await fetch(`${service.url}/local/messages/${first?.id}/action`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: service.url },
      body: JSON.stringify({ nonce: randomUUID(), authorId: "ada", action: "vary", turnId }),
    });
    expect(pressed.status).toBe(200);
    const pictures = (await client.until((all) => all.filter(isPicture).length === 2)).filter(isPicture);
    expect(pictures[1]?.text).toContain("1 reference picture");
  });
});
