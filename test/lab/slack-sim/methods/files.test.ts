import { describe, expect, test } from "vitest";
import { createClock } from "../../../../lab/slack-sim/clock.ts";
import { callApi, createWebClient, errorOf } from "../../../../lab/slack-sim/web-api.ts";
import type { Json } from "../../../../lab/slack-sim/world.ts";
import { startGeneral } from "../../../support/slack.ts";

async function openGeneral() {
  const { slack, ada, general } = await startGeneral({ clock: createClock({ isFrozen: true }) });
  return { slack, ada, general, client: createWebClient(slack) };
}

const bytes = Buffer.from("picture bytes");

describe("the simulated methods of files", () => {
  test("the official client's upload appears later in the thread", async () => {
    const { slack, ada, general, client } = await openGeneral();
    const question = ada.say(general, "draw");
    await client.filesUploadV2({
      channel_id: general.id,
      thread_ts: question.ts,
      file: bytes,
      filename: "picture.png",
      initial_comment: "Here",
    });
    expect(slack.answers(general)).toEqual([]);
    slack.advance(30);
    const [shared] = slack.answers(general, question);
    expect(shared?.content).toMatchObject({ text: "Here", files: [{ name: "picture.png", mimeType: "image/png" }] });
    expect(Buffer.from(shared?.content.files[0]?.bytes ?? [])).toEqual(bytes);
    const { file } = await client.files.info({ file: shared?.content.files[0]?.id ?? "" });
    expect(file?.shares?.public?.[general.id]?.[0]).toMatchObject({ ts: shared?.ts, thread_ts: question.ts });
  });

  test("the response to a completed upload does not contain its message yet", async () => {
    const { slack, general, client } = await openGeneral();
    const { body } = await callApi(slack, "files.getUploadURLExternal", { filename: "a.txt", length: 3 });
    expect(await (await fetch(String(body["upload_url"]), { method: "POST", body: "abc" })).text()).toBe("OK - 3");
    const files = [{ id: String(body["file_id"]), title: "A" }] as [{ id: string; title: string }];
    const done = await client.files.completeUploadExternal({ files, channel_id: general.id });
    expect(done.files).toEqual(files);
    expect(await errorOf(slack, "files.completeUploadExternal", { files })).toBe("file_not_found");
  });

  test("an upload must have the announced length, and the app can complete it only after sending the bytes", async () => {
    const { slack } = await openGeneral();
    const { body } = await callApi(slack, "files.getUploadURLExternal", { filename: "a.txt", length: 3 });
    const files = [{ id: body["file_id"] }];
    expect(await errorOf(slack, "files.completeUploadExternal", { files })).toBe("file_not_found");
    expect((await fetch(String(body["upload_url"]), { method: "POST", body: "abcd" })).status).toBe(400);
    expect(await errorOf(slack, "files.getUploadURLExternal", { filename: "a.txt" })).toBe("invalid_arguments");
  });

  test("files can be shared only in channels that the app is in, even public ones", async () => {
    const { slack, ada } = await openGeneral();
    slack.workspace.scopes.add("chat:write.public");
    const outside = slack.channel({ name: "outside", members: [ada], hasApp: false });
    const args = { files: [{ id: "F1" }], channel_id: outside.id };
    expect(await errorOf(slack, "files.completeUploadExternal", args)).toBe("not_in_channel");
  });

  test("a private link returns the bytes only with the app's token", async () => {
    const { slack, ada, general } = await openGeneral();
    const { content } = ada.upload(general, [{ name: "cat.png", bytes }]);
    const { body } = await callApi(slack, "files.info", { file: content.files[0]?.id });
    const link = String((body["file"] as Json)["url_private"]);
    const open = (headers: Record<string, string>) => fetch(link, { headers, redirect: "manual" });
    const allowed = await open({ authorization: `Bearer ${slack.botToken}` });
    expect(allowed.headers.get("content-type")).toBe("image/png");
    expect(Buffer.from(await allowed.arrayBuffer())).toEqual(bytes);
    for (const headers of [{}, { authorization: "Bearer xoxb-other" }]) {
      const login = await open(headers as Record<string, string>);
      expect(login.status).toBe(200);
      expect(login.headers.get("content-type")).toContain("text/html");
      expect(await login.text()).toContain("Sign in");
    }
  });

  test("a private link needs the scope, and can lead to the login page", async () => {
    const { slack, ada, general } = await openGeneral();
    const { content } = ada.upload(general, [{ name: "cat.png", bytes }]);
    const { body } = await callApi(slack, "files.info", { file: content.files[0]?.id });
    const link = String((body["file"] as Json)["url_private"]);
    const headers = { authorization: `Bearer ${slack.botToken}` };
    slack.workspace.scopes.delete("files:read");
    expect(await (await fetch(link, { headers })).text()).toContain("Sign in");
    slack.redirectToLogin(true);
    const redirect = await fetch(link, { headers, redirect: "manual" });
    expect([redirect.status, redirect.headers.get("location")]).toEqual([302, expect.stringContaining("/signin?")]);
    expect(await errorOf(slack, "files.info", { file: content.files[0]?.id })).toBe("missing_scope");
    const login = await fetch(link, { headers });
    expect([login.status, await login.text()]).toEqual([200, expect.stringContaining("Sign in")]);
  });

  test("in a channel shared with other organisations a file is a stub until the app looks it up", async () => {
    const { slack, ada, client } = await openGeneral();
    const shared = slack.channel({ name: "partners", members: [ada], isShared: true });
    const { content, deliveries } = ada.upload(shared, [{ name: "cat.png", bytes }], `<@${slack.workspace.bot.id}>`);
    const { id = "" } = content.files[0] ?? {};
    expect(deliveries.map(({ payload }) => payload)).toMatchObject([
      {
        is_ext_shared_channel: true,
        event: { subtype: "file_share", files: [{ id, mode: "file_access", file_access: "check_file_info" }] },
      },
    ]);
    expect((await client.files.info({ file: id })).file).toMatchObject({ mimetype: "image/png", size: bytes.length });
  });

  test("the app can delete only its own files", async () => {
    const { slack, ada, general } = await openGeneral();
    const { content } = ada.upload(general, [{ name: "cat.png", bytes }]);
    expect(await errorOf(slack, "files.delete", { file: content.files[0]?.id })).toBe("cant_delete_file");
    expect(await errorOf(slack, "files.delete", { file: "F404" })).toBe("file_not_found");
  });
});
