import { expect, test } from "vitest";
import { createRespond, toEphemeral } from "../../../../adapters/slack/interactions/response-urls.ts";
import { startInteractions } from "../interaction-stage.ts";

async function startRespond() {
  const stage = await startInteractions();
  await stage.ada.command("/help", "", stage.general);
  const responseUrl = stage.events[0]?.reply.extra?.["responseUrl"];
  return { ...stage, responseUrl, respond: createRespond(stage.slack.apiUrl) };
}

test("only who asked reads the answer", async () => {
  const { slack, ada, bob, general, responseUrl, respond } = await startRespond();
  await respond(responseUrl, toEphemeral("psst"));
  expect(slack.ephemerals(general, ada.id).map(({ shown }) => shown)).toEqual(["psst"]);
  expect(slack.ephemerals(general, bob.id)).toEqual([]);
});

test("an answer that Slack does not take any more is a failure without the address", async () => {
  const { responseUrl, respond } = await startRespond();
  for (let uses = 0; uses < 5; uses++) await respond(responseUrl, toEphemeral(`psst ${uses}`));
  const failure = await respond(responseUrl, toEphemeral("psst")).catch(String);
  expect(failure).toMatch(/status 404/);
  expect(failure).not.toContain("response/");
});

test("nothing is sent to an address that is not Slack's, or to none", async () => {
  const respond = createRespond(undefined);
  for (const url of ["https://hooks.slack.com.example/x", "http://hooks.slack.com/x", "http://169.254.169.254/"]) {
    await expect(respond(url, toEphemeral("psst"))).rejects.toThrow(/not one of Slack's/);
  }
  await expect(respond(undefined, toEphemeral("psst"))).resolves.toBeUndefined();
});
