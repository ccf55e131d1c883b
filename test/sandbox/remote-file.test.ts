import { describe, expect, test } from "vitest";
import { fetchRemoteFile, MAX_FILE_BYTES } from "../../src/sandbox/remote-file.ts";
import { serveFiles } from "./sandbox.ts";

const never = new AbortController().signal;

describe("the download of a referenced file", () => {
  test.each([
    "http://127.0.0.1/a",
    "http://2130706433/a",
    "http://localhost/a",
    "http://169.254.169.254/latest/meta-data",
    "http://[::1]/a",
    "http://[::ffff:127.0.0.1]/a",
  ])("fetchRemoteFile refuses %s because its address is private", async (url) => {
    await expect(fetchRemoteFile(url, [], never)).rejects.toThrow(/its address is private/);
  });

  test.each([
    ["file:///etc/passwd", /http or https/],
    ["ftp://example.com/a", /http or https/],
    ["not a url", /no valid URL/],
    ["http://name:word@example.com/a", /name or password/],
  ])("fetchRemoteFile refuses %s", async (url, reason) => {
    await expect(fetchRemoteFile(url, [], never)).rejects.toThrow(reason);
  });

  test("fetchRemoteFile fetches private addresses only from a trusted origin", async () => {
    const origin = await serveFiles({ "/a.png": Buffer.from("abc") });
    expect((await fetchRemoteFile(`${origin}/a.png`, [origin], never)).toString()).toBe("abc");
    await expect(fetchRemoteFile(`${origin}/a.png`, ["http://127.0.0.1:9"], never)).rejects.toThrow(
      /its address is private/,
    );
  });

  test("fetchRemoteFile follows no redirect and accepts only status 200", async () => {
    const origin = await serveFiles({ "/a.png": Buffer.from("abc") });
    await expect(fetchRemoteFile(`${origin}/redirect`, [origin], never)).rejects.toThrow(/status 302/);
    await expect(fetchRemoteFile(`${origin}/gone`, [origin], never)).rejects.toThrow(/status 404/);
  });

  test("fetchRemoteFile stops at the size limit", async () => {
    const origin = await serveFiles({ "/large": Buffer.alloc(MAX_FILE_BYTES + 1) });
    const size = fetchRemoteFile(`${origin}/large`, [origin], never).then(({ length }) => length);
    await expect(size).rejects.toThrow(/larger than/);
  });

  test("fetchRemoteFile stops with the signal", async () => {
    const origin = await serveFiles({ "/a": Buffer.from("abc") });
    await expect(fetchRemoteFile(`${origin}/a`, [origin], AbortSignal.abort(new Error("left")))).rejects.toThrow(
      /left/,
    );
  });
});
