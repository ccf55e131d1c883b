import sharp from "sharp";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { prepareFile } from "../../../../adapters/local/store/files.ts";
import { type LocalPage, startLocalPage } from "../../../support/local-page.ts";

const signal = new AbortController().signal;

describe("files of the local page", () => {
  let page: LocalPage;
  let png: Uint8Array;

  beforeEach(async () => {
    page = await startLocalPage();
    png = await sharp({ create: { width: 30, height: 20, channels: 3, background: "#0b7265" } })
      .png()
      .toBuffer();
  });

  afterEach(() => page.close());

  test("files are recognized by their bytes, with an image's size", async () => {
    expect(await page.upload("holiday.html", png)).toMatchObject({
      name: "holiday.html",
      contentType: "image/png",
      isImage: true,
      width: 30,
      height: 20,
      sizeBytes: png.length,
    });
  });

  test("the page shows only images inline", async () => {
    const picture = await page.upload("a.png", png);
    const shown = await fetch(`${page.url}/local/files/${picture.id}`);
    expect(shown.headers.get("content-type")).toBe("image/png");
    expect(shown.headers.get("content-disposition")).toBe("inline; filename*=UTF-8''a.png");
    expect(Buffer.from(await shown.arrayBuffer()).equals(png)).toBe(true);
  });

  test("files are stored in slices, returned complete, and deleted with all slices", async () => {
    const bytes = Buffer.alloc(3 * 1024 * 1024 + 5, "a slice");
    const { id, sizeBytes } = await page.upload("large.txt", bytes);
    const slices = () =>
      page.database.prepare("SELECT max(length(bytes)) AS longest, count(*) AS n FROM local_file_slices").get();
    expect({ sizeBytes, ...slices() }).toEqual({ sizeBytes: bytes.length, longest: 256 * 1024, n: 13 });
    const served = await fetch(`${page.url}/local/files/${id}`);
    expect(served.headers.get("content-length")).toBe(String(bytes.length));
    expect(Buffer.from(await served.arrayBuffer()).equals(bytes)).toBe(true);
    const ref = { platform: "local", id, name: "large.txt", sizeBytes };
    const opened = await Array.fromAsync(await page.adapter.openAttachment(ref, signal));
    expect(Buffer.concat(opened).equals(bytes)).toBe(true);
    const half = (await page.adapter.openAttachment(ref, signal))[Symbol.asyncIterator]();
    await half.next();
    page.database.prepare("DELETE FROM local_files WHERE id = ?").run(id);
    expect(slices()?.["n"]).toBe(0);
    await expect(half.next()).rejects.toThrow("is gone");
  });

  test.for([
    ["page.html", "<script>alert(1)</script>"],
    ["drawing.svg", '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'],
    ["fake.png", "<html><script>alert(1)</script>"],
    ["doc.pdf", "%PDF-1.7\n"],
  ] as const)("the page offers %s only as a sandboxed download", async ([name, text]) => {
    const { id, isImage } = await page.upload(name, new TextEncoder().encode(text));
    expect(isImage).toBe(false);
    const { headers } = await fetch(`${page.url}/local/files/${id}`);
    expect(headers.get("content-type")).toBe("application/octet-stream");
    expect(headers.get("content-disposition")).toMatch(/^attachment;/);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-security-policy")).toBe("default-src 'none'; sandbox");
  });

  test("files keep names in any script, without misleading characters", async () => {
    const { id, name } = await page.upload("../../数 表's\u202egnp.exe\r\n", new Uint8Array([1]));
    expect(name).toBe("数 表'sgnp.exe");
    const { headers } = await fetch(`${page.url}/local/files/${id}`);
    expect(headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''%E6%95%B0%20%E8%A1%A8%27sgnp.exe");
  });

  test("a long file name keeps its start and its end", async () => {
    const { name } = await page.upload(`${"report ".repeat(30)}of 2026.txt`, new Uint8Array([1]));
    expect(name).toMatch(/^(report )+.*….*of 2026\.txt$/);
    expect(name).toHaveLength(120);
  });

  test("the page refuses files over 20 MiB in one sentence, whatever length the browser announced", async () => {
    await expect(page.upload("big", new Uint8Array(20 * 1024 * 1024 + 1))).rejects.toThrow("at most 20 MiB");
    const { database } = page;
    expect(database.prepare("SELECT count(*) AS n FROM local_files").get()?.["n"]).toBe(0);
  });

  test("the page refuses an empty file", async () => {
    await expect(page.upload("empty", new Uint8Array())).rejects.toThrow("The file is empty.");
  });

  test("a file can be sent once, and only if it exists", async () => {
    const { id } = await page.upload("a.png", png);
    await page.send({ text: "look", fileIds: [id] });
    await expect(page.send({ text: "again", fileIds: [id] })).rejects.toThrow("attach it again");
    await expect(page.send({ text: "what", fileIds: ["nothing"] })).rejects.toThrow("attach it again");
  });

  test("files are deleted with their message", async () => {
    const { id } = await page.upload("a.png", png);
    const messageId = await page.send({ text: "look", fileIds: [id] });
    const ref = { platform: "local", id, name: "a.png", sizeBytes: png.length };
    await page.adapter.openAttachment(ref, signal);
    await page.post(`/local/messages/${messageId}/delete`, { nonce: "delete-it" });
    expect((await fetch(`${page.url}/local/files/${id}`)).status).toBe(404);
    const message = expect.stringContaining('The file "a.png" is gone') as unknown;
    await expect(page.adapter.openAttachment(ref, signal)).rejects.toMatchObject({ message, cause: { kind: "gone" } });
  });

  test("files that were never sent are deleted after a day, at the next start", async () => {
    const old = await page.upload("old.png", png);
    const fresh = await page.upload("fresh.png", png);
    page.database.prepare("UPDATE local_files SET created_at = created_at - 90000000 WHERE id = ?").run(old.id);
    await page.adapter.listen(async () => {});
    expect((await fetch(`${page.url}/local/files/${old.id}`)).status).toBe(404);
    expect((await fetch(`${page.url}/local/files/${fresh.id}`)).status).toBe(200);
  });

  test("a rotated image is shown with its visible size", async () => {
    const turned = await sharp(png).jpeg().withMetadata({ orientation: 6 }).toBuffer();
    expect(await prepareFile({ name: "turned.jpg", bytes: turned }, signal)).toMatchObject({ width: 20, height: 30 });
  });

  test("an image that breaks off after its header is stored", async () => {
    const file = await prepareFile({ name: "half.png", bytes: png.slice(0, 20) }, signal);
    expect(file).toMatchObject({ name: "half.png" });
  });
});
