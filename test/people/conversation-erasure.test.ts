import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { ada } from "../../lab/support/events.ts";
import { silent } from "../../lab/support/log.ts";
import { noFiles, pictureTurn } from "../../lab/support/picture-turn.ts";
import { fakeServices } from "../../lab/support/services.ts";
import { createHistory } from "../../src/history/history.ts";
import { createEraseConversations } from "../../src/people/conversation-erasure.ts";
import type { PersonalDataDeps } from "../../src/people/personal-data.ts";
import type { ReplyAddress } from "../../src/port/events.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createSettings } from "../../src/settings/settings.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createLedger } from "../../src/tools/ledger.ts";
import { createTurnRecords, TURNS } from "../../src/turn/records.ts";
import { createUsage } from "../../src/usage/usage.ts";
import { answered, said } from "../support/history-contract.ts";

const RECORD = {
  v: 1 as const,
  messageIds: [],
  posted: [],
  removed: 0,
  isPosting: false,
  phase: "final" as const,
  attempts: 1,
  seen: 0,
  edition: 1,
  canRetry: false,
  canContinue: false,
};

/** Stores everything that a conversation can leave behind. All texts name the conversation's workspace. */
async function start() {
  const database = new DatabaseSync(":memory:");
  const stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  const { open, inTurn, counters } = stores;
  const common = { open, inTurn, ttlMs: 60_000, log: silent };
  const history = createHistory({ ...common, now: Date.now });
  const records = createTurnRecords({ ...common, files: noFiles });
  const settings = createSettings({ ...common, now: Date.now });
  const ledger = createLedger({ keyv: open(TURNS), allowed: open(`${TURNS}:allowed`), ttlMs: 60_000 });
  let emptied = 0;
  const files = { clear: () => void emptied++ };
  const usage = createUsage({ counters, log: silent, now: Date.now });
  const imagine = { erase: records.erasePictures };
  const erase = createEraseConversations(
    fakeServices<PersonalDataDeps>({ history, stores, imagine, settings, usage, files, database, insight: undefined }),
  );
  const eraseTeam = (team: string) => erase({ platform: "slack", workspaceId: team, prefix: `slack:${team}:` });

  async function talk(team: string, channelId: string): Promise<void> {
    const conversationId = `slack:${team}:${channelId}:1.1`;
    const reply: ReplyAddress = { platform: "slack", channelId, workspaceId: team, extra: { team } };
    const author = { platform: "slack", id: "U1", name: "Ada" };
    await history.append(conversationId, said(`${conversationId}:q`, `a secret of <${team}>`, author));
    await history.append(conversationId, answered(`turn-${channelId}-${team}`, `<${team}> was told`, author));
    await records.save({ ...RECORD, id: `turn-${channelId}-${team}`, conversationId, reply, author: ada });
    const drawn = { id: `job-${channelId}-${team}`, prompt: `<${team}> drawn` };
    await records.savePicture(pictureTurn({ ...drawn, conversationId, reply }));
    await ledger.allow(conversationId, [`<${team}>-tool`], { platform: "slack", id: "U1" });
    await settings.set(reply, "model", `<${team}> model`);
    await settings.set(reply, "persona", `<${team}> persona`, "U1");
    await settings.set(reply, "prompts", [`<${team}> suggested`], "U1");
    await settings.set(reply, "options", { temperature: 1 });
    await usage.note(randomUUID(), { author: { id: `person-of-${team}.` }, reply }, { answers: 1 });
  }

  const dump = () => JSON.stringify(database.prepare("SELECT * FROM keyv").all());
  return { eraseTeam, talk, dump, stores, history, settings, usage, emptied: () => emptied };
}

function channel(workspaceId: string, channelId: string) {
  return { platform: "slack", workspaceId, channelId };
}

describe("the erasure of a workspace's conversations", () => {
  test("erasing a workspace removes its conversations completely, and keeps everything of the others", async () => {
    const { eraseTeam, talk, dump, history, settings, usage, emptied } = await start();
    await talk("T1", "C1");
    await talk("T1", "C2");
    await talk("T12", "C3");
    expect(await eraseTeam("T1")).toBe(2);
    const left = dump();
    for (const word of ["<T1>", "%3CT1%3E-tool", "turn-C1", "job-C1", "turn-C2", "person-of-T1."])
      expect(left).not.toContain(word);
    for (const word of [
      "a secret of <T12>",
      "<T12> was told",
      "<T12> drawn",
      "turn-C3",
      "<T12> persona",
      "%3CT12%3E-tool",
    ]) {
      expect(left).toContain(word);
    }
    expect((await history.read("slack:T12:C3:1.1", { maxEntries: 9 })).entries).toHaveLength(2);
    expect(await settings.read(channel("T1", "C1"))).toEqual({ isKnown: true });
    const used = (workspaceId: string, channelId: string) => usage.readMonth(channel(workspaceId, channelId));
    expect([(await used("T1", "C1")).answers, (await used("T12", "C3")).answers]).toEqual([0, 1]);
    expect(emptied()).toBe(1);
  });

  test("erasing a workspace keeps the settings and counts of a channel that another workspace shares", async () => {
    const { eraseTeam, talk, settings, usage } = await start();
    await talk("T1", "C1");
    await talk("T2", "C1");
    await eraseTeam("T1");
    expect(await settings.read(channel("T1", "C1"))).toEqual({ isKnown: true });
    expect(await settings.read(channel("T2", "C1"))).toMatchObject({ model: "<T2> model", persona: "<T2> persona" });
    expect(await usage.readMonth(channel("T2", "C1"))).toMatchObject({ answers: 1 });
  });

  test("erasing a workspace can resume after an interruption, and a repeated erasure finds nothing", async () => {
    const { eraseTeam, talk } = await start();
    await talk("T1", "C1");
    await eraseTeam("T1");
    await expect(eraseTeam("T1")).resolves.toBeGreaterThanOrEqual(0);
    expect(await eraseTeam("T2")).toBe(0);
  });

  test("erasing a workspace erases its settings and counts even if no record of a turn is left", async () => {
    const { eraseTeam, talk, stores, settings, usage } = await start();
    await talk("T1", "C1");
    await talk("T2", "C2");
    await settings.set(channel("T1", "C9"), "listens", true);
    // Simulates turn records that had expired, or an earlier erasure that had stopped right after them.
    for (const team of ["T1", "T2"]) {
      for await (const id of stores.conversations(`slack:${team}:`)) await stores.eraseConversation(id);
    }
    await eraseTeam("T1");
    expect(await settings.list()).toMatchObject([{ workspaceId: "T2", persona: "<T2> persona" }]);
    const used = await usage.readTable("everyone");
    expect(used.map(({ workspaceId }) => workspaceId)).toEqual(["T2"]);
    expect(await usage.readMonth({ platform: "slack", workspaceId: "T1" })).toMatchObject({ answers: 0 });
  });
});
