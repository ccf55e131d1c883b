import { expect, test } from "vitest";
import type { Workspaces } from "../../../adapters/slack/api/workspaces.ts";
import type { Workspace } from "../../../lab/slack-sim/world.ts";
import { startBot } from "./bot-stage.ts";

/** The bot in two workspaces. Each has a person with the same id. */
async function startTwo(scripts: string[][]) {
  const workspaces = new Map<string, Workspace>();
  const find: Workspaces["find"] = async (teamId) => {
    const found = workspaces.get(teamId);
    return found && { teamId, botUserId: found.bot.id, botId: found.bot.botId ?? "", token: found.botToken };
  };
  const bot = await startBot({ scripts, installed: { workspaces: { find } } });
  const other = bot.slack.addWorkspace("Other");
  for (const one of [bot.slack.workspace, other]) workspaces.set(one.id, one);
  const eve = bot.slack.user({ name: "Eve", id: bot.ada.id, workspace: other });
  return { ...bot, eve, other };
}

type Two = Awaited<ReturnType<typeof startTwo>>;

async function tell({ finished }: Two, person: Two["eve"], text: string): Promise<string> {
  const said = person.dm(text);
  return (await finished(person.direct(), said)).join();
}

test("people of two workspaces with the same id have separate usage, history and erasure", async () => {
  const stage = await startTwo([["For Ada."], ["For Eve."]]);
  const { ada, eve, slack, history } = stage;
  await tell(stage, ada, "a question of Ada's");
  expect(await tell(stage, eve, "!usage")).toContain("This month you've used no answers");
  await tell(stage, eve, "a question of Eve's");
  const kept = await history.exportAuthor("slack", `${slack.workspace.id}/${ada.id}`);
  expect(JSON.stringify(kept)).toContain("a question of Ada's");
  expect(JSON.stringify(kept)).not.toContain("Eve");
  expect(await tell(stage, eve, "!forget me for good")).toMatch(/^Erased 2 /);
  expect(await tell(stage, ada, "!usage")).toContain("This month you've used 1 answer,");
  expect(await tell(stage, ada, "!forget me for good")).toMatch(/^Erased 2 /);
});
