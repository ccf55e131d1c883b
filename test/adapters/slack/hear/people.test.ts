import { describe, expect, test } from "vitest";
import { ApiError } from "../../../../adapters/slack/api/error.ts";
import type { Body } from "../../../../adapters/slack/api/wire.ts";
import { createPeople, createPeopleQuery } from "../../../../adapters/slack/hear/people.ts";
import { silent } from "../../../../lab/support/log.ts";
import { ACME } from "../workspace.ts";

type Answer = Body | Error | Promise<Body>;

function start(
  users: Readonly<Record<string, Answer>>,
  channels: Readonly<Record<string, Answer>> = {},
  given: { groups?: Readonly<Record<string, Answer>>; namedGroups?: () => Promise<string[]> } = {},
) {
  const asked: string[] = [];
  let nowMs = 0;
  const api = {
    async call(_: string, method: string, args: Readonly<Record<string, unknown>>) {
      const id = String(args["user"] ?? args["channel"] ?? args["usergroup"]);
      asked.push(id);
      const found = await (method === "users.info"
        ? users
        : method === "usergroups.users.list"
          ? (given.groups ?? {})
          : channels)[id];
      if (found === undefined) throw new ApiError(method, "It is not there.", { code: "user_not_found", status: 200 });
      if (found instanceof Error) throw found;
      return found;
    },
  };
  const people = createPeople({ api, log: silent, now: () => nowMs, namedGroups: given.namedGroups });
  return { people, asked, wait: (ms: number) => void (nowMs += ms) };
}

const user = (fields: Readonly<Record<string, unknown>>) => ({ user: { team_id: "T1", ...fields } });
const ADA = user({ name: "ada", real_name: "Ada L.", profile: { display_name: "Ada" } });

describe("people on Slack", () => {
  test("a person has the name that Slack shows", async () => {
    const { people } = start({
      U1: ADA,
      U2: user({ name: "bob", profile: { display_name: "", real_name: "Bob B." } }),
    });
    expect(await people.toAuthor(ACME, "U1")).toMatchObject({ name: "Ada" });
    expect(await people.toAuthor(ACME, "U2")).toMatchObject({ name: "Bob B." });
    expect(await people.toAuthor(ACME, "U3", { name: "cy" })).toMatchObject({ name: "cy" });
    expect(await people.toAuthor(ACME, "U3", { name: "" })).toMatchObject({ name: "U3" });
  });

  test("people of two workspaces are different even if they have the same id on Slack", async () => {
    const { people } = start({ U1: ADA });
    const [one, other] = [ACME, { ...ACME, teamId: "T2" }].map((workspace) => people.toAuthor(workspace, "U1"));
    expect(await one).toMatchObject({ id: "T1/U1" });
    expect(await other).toMatchObject({ id: "T2/U1" });
    expect(await people.toAuthor(ACME, "U1", { team: "T2" })).toMatchObject({ id: "T2/U1" });
  });

  test("people of an organisation are the same in all its workspaces", async () => {
    const { people } = start({ U1: ADA });
    const workspaces = ["T1", "T2"].map((teamId) => ({ ...ACME, teamId, enterpriseId: "E1" }));
    for (const workspace of workspaces) {
      for (const team of [undefined, "T1", "E1"]) {
        expect(await people.toAuthor(workspace, "U1", { team })).toMatchObject({ id: "E1/U1" });
      }
    }
  });

  test("admins of a workspace can act for others, and can change channel settings as a channel's creator can", async () => {
    const { people } = start(
      { U1: ADA, U2: user({ name: "boss", is_owner: true }), U3: user({ name: "guest", is_restricted: true }) },
      { C1: { channel: { name: "general", creator: "U1" } }, C2: { channel: { name: "other", creator: "U3" } } },
    );
    const author = (id: string, channelId: string) => people.toAuthor(ACME, id, { channelId });
    expect(await author("U1", "C1")).toMatchObject({ mayConfigure: true });
    expect(await author("U1", "C2")).toMatchObject({ mayConfigure: false });
    expect(await author("U2", "C2")).toMatchObject({ isModerator: true, mayConfigure: true });
    expect(await author("U3", "C2")).toMatchObject({ mayConfigure: false });
    expect(await author("U1", "C9")).toMatchObject({ mayConfigure: false });
    expect(await author("U1", "D1")).not.toHaveProperty("mayConfigure");
  });

  test("people in a group direct message all have the same rights", async () => {
    const { people } = start(
      { U1: ADA },
      { C1: { channel: { name: "mpdm-ada--bob-1", creator: "U2", is_mpim: true } } },
    );
    expect(await people.toAuthor(ACME, "U1", { channelId: "C1" })).not.toHaveProperty("mayConfigure");
  });

  test("people are marked as guests, members of other organisations, or bots", async () => {
    const { people } = start({
      U1: ADA,
      U2: user({ name: "guest", is_ultra_restricted: true }),
      U3: user({ name: "eve", team_id: "T2" }),
      U4: user({ name: "bot", is_bot: true }),
    });
    expect(await people.toAuthor(ACME, "U1")).not.toHaveProperty("kind");
    expect(await people.toAuthor(ACME, "U2")).toMatchObject({ kind: "guest" });
    expect(await people.toAuthor(ACME, "U3", { team: "T2" })).toMatchObject({ kind: "external", workspaceId: "T2" });
    expect(await people.toAuthor(ACME, "U4")).toMatchObject({ kind: "bot" });
    // In an organisation with several workspaces, no member of the organisation is external.
    const { people: wide } = start({ U1: user({ name: "org", team_id: "T2", enterprise_user: { id: "U1" } }) });
    const workspace = { ...ACME, enterpriseId: "E1" };
    expect(await wide.toAuthor(workspace, "U1", { team: "T2" })).not.toHaveProperty("kind");
  });

  test("a person of another organisation is external even if that organisation has several workspaces", async () => {
    const eve = user({ name: "eve", team_id: "T9", is_admin: true, enterprise_user: { enterprise_id: "E9" } });
    const { people } = start({ U1: eve });
    const stranger = { name: "eve", isAdmin: false, isGuest: true, kind: "external" };
    expect(await people.person(ACME, "U1")).toEqual(stranger);
    expect(await people.person({ ...ACME, teamId: "T2", enterpriseId: "E1" }, "U1")).toEqual(stranger);
    const ours = { ...ACME, teamId: "T3", enterpriseId: "E9" };
    expect(await people.person(ours, "U1")).toEqual({ name: "eve", isAdmin: true, isGuest: false });
  });

  test("people are looked up in exactly the user groups that the policy names", async () => {
    let named: string[] = [];
    const groups = { S1: { users: ["U1", "U2"] }, S2: { users: ["U2"] } };
    const { people, asked } = start({ U1: ADA }, {}, { groups, namedGroups: async () => named });
    expect(await people.toAuthor(ACME, "U1")).not.toHaveProperty("groups");
    named = ["S1", "S2", "S9", "123456789012345678"];
    expect(await people.toAuthor(ACME, "U1")).toMatchObject({ groups: ["S1"] });
    await people.toAuthor(ACME, "U1");
    expect(asked).toEqual(["U1", "S1", "S2", "S9"]);
  });

  test("people of other organisations have no admin rights here", async () => {
    const { people } = start({
      U1: user({ name: "eve", team_id: "T2", is_admin: true }),
      U2: user({ name: "org", team_id: "T2", is_admin: true, enterprise_user: {} }),
    });
    expect(await people.person(ACME, "U1")).toEqual({
      name: "eve",
      isAdmin: false,
      isGuest: true,
      kind: "external",
    });
    const organisation = { ...ACME, enterpriseId: "E1" };
    expect(await people.person(organisation, "U2")).toEqual({ name: "org", isAdmin: true, isGuest: false });
  });

  test("several parallel lookups of a person are one call, repeated after an hour", async () => {
    const { people, asked, wait } = start({ U1: ADA });
    await Promise.all([people.person(ACME, "U1"), people.person(ACME, "U1")]);
    await people.person(ACME, "U1");
    expect(asked).toEqual(["U1"]);
    expect(await people.person({ ...ACME, teamId: "T2" }, "U1")).toBeDefined();
    wait(3_600_001);
    await people.person(ACME, "U1");
    expect(asked).toEqual(["U1", "U1", "U1"]);
  });

  test("the bot does not wait for a name that Slack does not return in time, and knows the name the next time", async () => {
    const answer = Promise.withResolvers<Body>();
    const { people, asked } = start({ U1: answer.promise });
    expect(await people.person(ACME, "U1")).toBeUndefined();
    answer.resolve(ADA);
    expect(await people.person(ACME, "U1")).toMatchObject({ name: "Ada" });
    expect(asked).toEqual(["U1"]);
  });
});

function startQuery(answer: () => Promise<Readonly<Record<string, unknown>>>) {
  let nowMs = 0;
  let calls = 0;
  const call = () => {
    calls += 1;
    return answer();
  };
  const ask = createPeopleQuery({ api: { call }, log: silent, now: () => nowMs });
  return {
    look: () => ask(ACME, "users.info", { user: "U1" }, ({ user }) => user),
    calls: () => calls,
    wait: (ms: number) => void (nowMs += ms),
  };
}

describe("the lookup of people on Slack", () => {
  test("looking up people stays below Slack's limits per minute", async () => {
    const { look, calls, wait } = startQuery(async () => ({ user: "Ada" }));
    for (let count = 0; count < 200; count++) await look();
    expect(calls()).toBe(80);
    expect(await look()).toBeUndefined();
    wait(60_001);
    expect(await look()).toBe("Ada");
  });

  test("looking up people pauses as long as Slack asks, without further calls", async () => {
    const refusal = { code: "ratelimited", status: 429, retryAfterMs: 30_000 };
    const { look, calls, wait } = startQuery(() => Promise.reject(new ApiError("users.info", "Wait.", refusal)));
    expect(await look()).toBeUndefined();
    wait(29_000);
    await look();
    expect(calls()).toBe(1);
    wait(2_000);
    await look();
    expect(calls()).toBe(2);
  });
});
