import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createHistory } from "../../src/history/history.ts";
import { createJobStore } from "../../src/imagine/job-store.ts";
import { createEraseConversations } from "../../src/people/conversation-erasure.ts";
import type { ReplyAddress } from "../../src/port/events.ts";
import { createSettings } from "../../src/settings/settings.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createLedger } from "../../src/tools/ledger.ts";
import { createTurnRecords, TURNS } from "../../src/turn/record.ts";
import { createUsage } from "../../src/usage/usage.ts";
import { ada } from "../support/events.ts";
import { answered, said } from "../support/history-contract.ts";
import { silent } from "../support/log.ts";
import { noCopies, noLinks, pictureJob } from "../support/picture-job.ts";

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

/** Everything that may be kept of a conversation, said in the words of the workspace it is in. */
async function start() {
  const database = new DatabaseSync(":memory:");
  const { open, inTurn, counters } = createStores({ redisUrl: undefined, database, log: silent });
  const common = { open, inTurn, ttlMs: 60_000, log: silent };
  const history = createHistory({ ...common, now: Date.now });
  const [records, jobs, settings] = [
    createTurnRecords(common),
    createJobStore({ ...common, copies: noCopies, links: noLinks }),
    createSettings(common),
  ];
  const ledger = createLedger({ keyv: open(TURNS), allowed: open(`${TURNS}:allowed`), ttlMs: 60_000 });
  let emptied = 0;
  const eraseCopies = () => void emptied++;
  const usage = createUsage({ open, counters, log: silent, now: Date.now });
  const erase = createEraseConversations({ history, records, ledger, jobs, settings, usage, eraseCopies });
  const eraseTeam = (team: string) => erase({ platform: "slack", workspaceId: team, prefix: `slack:${team}:` });

  async function talk(team: string, channelId: string): Promise<void> {
    const conversationId = `slack:${team}:${channelId}:1.1`;
    const reply: ReplyAddress = { platform: "slack", channelId, workspaceId: team, extra: { team } };
    const author = { platform: "slack", id: "U1", name: "Ada" };
    await history.append(conversationId, said(`${conversationId}:q`, `a secret of <${team}>`, author));
    await history.append(conversationId, answered(`turn-${channelId}-${team}`, `<${team}> was told`, author));
    await records.save({ ...RECORD, id: `turn-${channelId}-${team}`, conversationId, reply, author: ada });
    const job = pictureJob({ id: `job-${channelId}-${team}`, prompt: `<${team}> drawn` });
    await jobs.save({ ...job, conversationId, reply });
    await ledger.allow(conversationId, [`<${team}>-tool`], { platform: "slack", id: "U1" });
    await settings.setModel(reply, `<${team}> model`);
    await settings.setPersona(reply, `<${team}> persona`, "U1");
    await settings.setPrompts(reply, [`<${team}> suggested`], "U1");
    await settings.setOptions(reply, { temperature: 1 });
    await usage.note(randomUUID(), { author: { id: `person-of-${team}.` }, reply }, { answers: 1 });
  }

  const dump = () => JSON.stringify(database.prepare("SELECT * FROM keyv").all());
  return { eraseTeam, talk, dump, history, records, settings, usage, emptied: () => emptied };
}

function channel(workspaceId: string, channelId: string) {
  return { platform: "slack", workspaceId, channelId };
}

describe("the erasure of a workspace's conversations", () => {
  test("erasing a workspace leaves no word of them, and everything of the others", async () => {
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

  test("erasing a workspace leaves the settings and counts of a channel that another workspace has too", async () => {
    const { eraseTeam, talk, settings, usage } = await start();
    await talk("T1", "C1");
    await talk("T2", "C1");
    await eraseTeam("T1");
    expect(await settings.read(channel("T1", "C1"))).toEqual({ isKnown: true });
    expect(await settings.read(channel("T2", "C1"))).toMatchObject({ model: "<T2> model", persona: "<T2> persona" });
    expect(await usage.readMonth(channel("T2", "C1"))).toMatchObject({ answers: 1 });
  });

  test("erasing a workspace goes on where it was interrupted, and finds nothing the next time", async () => {
    const { eraseTeam, talk } = await start();
    await talk("T1", "C1");
    await eraseTeam("T1");
    await expect(eraseTeam("T1")).resolves.toBeGreaterThanOrEqual(0);
    expect(await eraseTeam("T2")).toBe(0);
  });

  test("erasing a workspace erases its settings and counts where no record of a turn is left", async () => {
    const { eraseTeam, talk, records, settings, usage } = await start();
    await talk("T1", "C1");
    await talk("T2", "C2");
    await settings.setListening(channel("T1", "C9"), true);
    // They expired before, or an erasure was interrupted right after them.
    for (const team of ["T1", "T2"]) await records.eraseConversations(`slack:${team}:`);
    await eraseTeam("T1");
    expect(await settings.list()).toMatchObject([{ workspaceId: "T2", persona: "<T2> persona" }]);
    const used = await usage.readTable("everyone");
    expect(used.map(({ workspaceId }) => workspaceId)).toEqual(["T2"]);
    expect(await usage.readMonth({ platform: "slack", workspaceId: "T1" })).toMatchObject({ answers: 0 });
  });
});
