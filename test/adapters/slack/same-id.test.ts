import { expect, test } from "vitest";
import type { Workspaces } from "../../../adapters/slack/api/workspaces.ts";
import { startSlack } from "../../simulators/slack/slack.ts";
import type { Workspace } from "../../simulators/slack/world.ts";
import { startBot } from "./bot-stage.ts";

/** The bot in two workspaces, each with somebody of the same id. */
async function startTwo(scripts: string[][]) {
  const slack = await startSlack();
  const other = slack.addWorkspace("Other");
  const workspaces = new Map<string, Workspace>([slack.workspace, other].map((one) => [one.id, one]));
  const find: Workspaces["find"] = async (teamId) => {
    const found = workspaces.get(teamId);
    return found && { teamId, botUserId: found.bot.id, botId: found.bot.botId ?? "", token: found.botToken };
  };
  const bot = await startBot({ slack, scripts, installed: { workspaces: { find } } });
  const eve = slack.user({ name: "Eve", id: bot.ada.id, workspace: other });
  return { ...bot, eve, other };
}

type Two = Awaited<ReturnType<typeof startTwo>>;

async function tell({ finished }: Two, person: Two["eve"], text: string): Promise<string> {
  const said = person.dm(text);
  return (await finished(person.direct(), said)).join();
}

test("people of two workspaces with one id have usage, history and erasure of their own", async () => {
  const stage = await startTwo([["For Ada."], ["For Eve."]]);
  const { ada, eve, slack, history } = stage;
  await tell(stage, ada, "a question of Ada's");
  expect(await tell(stage, eve, "!usage")).toContain("You used this month: no answers");
  await tell(stage, eve, "a question of Eve's");
  const kept = await history.exportAuthor("slack", `${slack.workspace.id}/${ada.id}`);
  expect(JSON.stringify(kept)).toContain("a question of Ada's");
  expect(JSON.stringify(kept)).not.toContain("Eve");
  expect(await tell(stage, eve, "!forget me for good")).toMatch(/^Erased: 2 /);
  expect(await tell(stage, ada, "!usage")).toContain("You used this month: 1 answer,");
  expect(await tell(stage, ada, "!forget me for good")).toMatch(/^Erased: 2 /);
});

test("data stored under the id alone belongs to the person of the workspace where it was written", async () => {
  const stage = await startTwo([]);
  const { ada, eve, slack, other, history } = stage;
  const author = { platform: "slack", id: ada.id, name: "Somebody" };
  for (const [id, team] of [
    ["1", slack.workspace.id],
    ["2", other.id],
    ["3", other.id],
  ] as const) {
    const messages = [{ role: "user" as const, content: "old" }];
    await history.append(`slack:${team}:D1:${id}`, { id, at: 1, author, messages });
  }
  expect(await tell(stage, ada, "!forget me for good")).toMatch(/^Erased: 1 /);
  expect(await tell(stage, eve, "!forget me for good")).toMatch(/^Erased: 2 /);
});
