import { describe, expect, test } from "vitest";
import { ask, fail, HIDE, SEE, type Step, startWorld } from "../support/rights-on-discord.ts";
import { type Expected, searchAll } from "./rights.ts";

type Row = Step & Expected;

const OPEN = ["general", "open"];

const ROWS: Readonly<Record<string, Row>> = {
  "an open channel shows open channels, and withholds one that needs a role": {
    asks: "general",
    sees: OPEN,
    withheld: 1,
  },
  "an answer to the asker alone shows every channel of theirs": { asks: "only general", sees: [...OPEN, "staff"] },
  "a channel that the asker cannot see is not even counted": {
    asks: "general",
    before: ({ add, roles }) => add("leads", { [roles.lead.id]: SEE }, true),
    sees: OPEN,
    withheld: 1,
  },
  "a closed channel shows itself and open channels": { asks: "staff", sees: [...OPEN, "staff"] },
  "a closed channel shows another one that is open to the same role": {
    asks: "staff",
    before: ({ add, roles }) => add("staffroom", { [roles.staff.id]: SEE }, true),
    sees: [...OPEN, "staff", "staffroom"],
  },
  "a closed channel withholds one that is open to another role of the asker": {
    asks: "staff",
    before({ add, roles, discord, guild, ada }) {
      discord.giveRole(guild, ada, roles.lead);
      add("leads", { [roles.lead.id]: SEE }, true);
    },
    sees: [...OPEN, "staff"],
    withheld: 1,
  },
  "a closed channel of two roles withholds a channel that only one of them sees": {
    asks: "staff",
    before({ add, close, roles }) {
      close("staff", roles.lead.id, SEE);
      add("staffroom", { [roles.staff.id]: SEE }, true);
    },
    sees: [...OPEN, "staff"],
    withheld: 1,
  },
  "a channel is withheld if a role that sees the room is kept out of it": {
    asks: "general",
    before: ({ close, roles }) => close("open", roles.muted.id, HIDE),
    sees: ["general"],
    withheld: 2,
  },
  "a channel is shown if the role that is kept out of it does not see the room either": {
    asks: "general",
    before({ close, roles }) {
      close("open", roles.muted.id, HIDE);
      close("general", roles.muted.id, HIDE);
    },
    sees: OPEN,
    withheld: 1,
  },
  "a closed channel withholds an open one from which a second role of a member can be kept out": {
    asks: "staff",
    before: ({ close, roles }) => close("open", roles.muted.id, HIDE),
    sees: ["general", "staff"],
    withheld: 1,
  },
  "a channel without message history for everyone is not shown": {
    asks: "general",
    before: ({ close, guild }) => close("open", guild.id, { deny: ["ReadMessageHistory"] }),
    sees: ["general"],
    withheld: 1,
  },
  "a channel is withheld if a person sees the room by name, but not that channel": {
    asks: "staff",
    before({ add, close, roles, bob }) {
      close("staff", bob.id, SEE);
      add("staffroom", { [roles.staff.id]: SEE }, true);
    },
    sees: [...OPEN, "staff"],
    withheld: 1,
  },
  "a channel is shown if the person who sees the room by name sees it too": {
    asks: "staff",
    before({ add, close, roles, bob }) {
      close("staff", bob.id, SEE);
      add("staffroom", { [roles.staff.id]: SEE, [bob.id]: SEE }, true);
    },
    sees: [...OPEN, "staff", "staffroom"],
  },
  "a channel is withheld if one person is kept out of it by name": {
    asks: "general",
    before: ({ close, bob }) => close("open", bob.id, HIDE),
    sees: ["general"],
    withheld: 2,
  },
  "a person who is named and has left the server does not count": {
    asks: "general",
    before({ close, guild, bob }) {
      close("open", bob.id, HIDE);
      guild.members.delete(bob.id);
    },
    sees: OPEN,
    withheld: 1,
  },
  "another bot that is kept out does not count": {
    asks: "general",
    before({ close, discord, guild }) {
      close("open", discord.addBot("helper", guild).id, HIDE);
    },
    sees: OPEN,
    withheld: 1,
  },
  "a channel with more named people than can be checked is withheld": {
    asks: "general",
    before({ close, discord, guild }) {
      for (let index = 0; index <= 20; index++) close("open", discord.addUser(`user ${index}`, guild).id, SEE);
    },
    sees: ["general"],
    withheld: 2,
  },
  "a room that only administrators see shows every channel": {
    asks: "admins",
    before({ add, discord, guild, ada }) {
      discord.giveRole(guild, ada, discord.addRole(guild, "admin", ["Administrator"]));
      add("admins", {}, true);
    },
    sees: ["admins", ...OPEN, "staff"],
  },
  "roles that grant what everyone lacks count alike in both channels": {
    asks: "general",
    before({ discord, guild, ada }) {
      const everyone = guild.roles.get(guild.id) ?? fail("everyone");
      everyone.permissions = 0n;
      discord.giveRole(guild, ada, discord.addRole(guild, "member", ["ViewChannel", "ReadMessageHistory"]));
    },
    sees: OPEN,
    withheld: 1,
  },
  "a channel that keeps out a role is withheld if that role opens the room": {
    asks: "general",
    before({ discord, guild, ada, close }) {
      const everyone = guild.roles.get(guild.id) ?? fail("everyone");
      everyone.permissions = 0n;
      const member = discord.addRole(guild, "member", ["ViewChannel", "ReadMessageHistory"]);
      discord.giveRole(guild, ada, member);
      close("open", member.id, HIDE);
      close("open", ada.id, { allow: ["ViewChannel", "ReadMessageHistory"] });
    },
    sees: ["general"],
    withheld: 2,
  },
  "an asker who loses the role between question and answer no longer sees the channel": {
    asks: "only general",
    meanwhile: ({ drop, ada, roles }) => drop(ada, roles.staff.id),
    sees: OPEN,
  },
  "an asker who loses the role no longer learns that something was withheld": {
    asks: "general",
    meanwhile: ({ drop, ada, roles }) => drop(ada, roles.staff.id),
    sees: OPEN,
  },
  "an asker who loses the role of the question's channel sees nothing of it alone": {
    asks: "only staff",
    meanwhile: ({ drop, ada, roles }) => drop(ada, roles.staff.id),
    sees: OPEN,
  },
  "an asker who was removed from the server meanwhile sees nothing alone": {
    asks: "only general",
    meanwhile: ({ guild, ada }) => guild.members.delete(ada.id),
    sees: [],
  },
  "a channel that is closed between question and answer is withheld": {
    asks: "general",
    meanwhile({ close, guild, roles }) {
      close("open", guild.id, HIDE);
      close("open", roles.staff.id, SEE);
    },
    sees: ["general"],
    withheld: 2,
  },
  "a thread of an open channel is shown, and one of a closed channel is withheld": {
    asks: "general",
    before({ thread }) {
      thread("open", "openThread");
      thread("staff", "staffThread");
    },
    sees: [...OPEN, "openThread"],
    withheld: 2,
  },
  "a thread of a channel that the asker cannot see is not even counted": {
    asks: "general",
    before({ add, thread, roles, bob }) {
      add("leads", { [roles.lead.id]: SEE }, true);
      thread("leads", "leadsThread", { by: bob });
    },
    sees: OPEN,
    withheld: 1,
  },
  "a private thread is withheld in its own channel": {
    asks: "general",
    before: ({ thread }) => thread("general", "secretThread", { isPrivate: true }),
    sees: OPEN,
    withheld: 2,
  },
  "a private thread is shown to one of its members alone": {
    asks: "only general",
    before: ({ thread }) => thread("general", "secretThread", { isPrivate: true }),
    sees: [...OPEN, "secretThread", "staff"],
  },
  "a private thread of others is not even counted": {
    asks: "general",
    before: ({ thread, bob }) => thread("general", "secretThread", { isPrivate: true, by: bob }),
    sees: OPEN,
    withheld: 1,
  },
  "an asker who was removed from a private thread meanwhile does not see it": {
    asks: "only general",
    before: ({ thread }) => thread("general", "secretThread", { isPrivate: true }),
    meanwhile: ({ channel, ada }) => channel("secretThread").thread?.memberIds.delete(ada.id),
    sees: [...OPEN, "staff"],
  },
  "a private thread shows itself and open channels": {
    asks: "secretThread",
    before: ({ thread }) => thread("general", "secretThread", { isPrivate: true }),
    sees: [...OPEN, "secretThread"],
    withheld: 1,
  },
  "a private thread shows no other private thread of the same channel": {
    asks: "secretThread",
    before({ thread }) {
      thread("general", "secretThread", { isPrivate: true });
      thread("general", "otherThread", { isPrivate: true });
    },
    sees: [...OPEN, "secretThread"],
    withheld: 2,
  },
  "a thread of a closed channel shows that channel": {
    asks: "staffThread",
    before: ({ thread }) => thread("staff", "staffThread"),
    sees: [...OPEN, "staff", "staffThread"],
  },
  "a room shows only itself while Discord does not tell the rights of one of its members": {
    asks: "room",
    before({ add, close, bob }) {
      add("room", { [bob.id]: SEE });
      close("open", bob.id, HIDE);
    },
    meanwhile: ({ discord }) =>
      discord.faults.failNext("GET /guilds/:guild/members/:user", { status: 503, skip: 1, times: 99 }),
    sees: ["room"],
    withheld: 3,
  },
  "nothing from other channels is shown while Discord does not describe the server": {
    asks: "general",
    meanwhile: ({ discord }) => discord.faults.failNext("GET /guilds/:guild", { status: 403, times: 99 }),
    sees: ["general"],
  },
};

describe("what a search on Discord shows", () => {
  test.each(Object.entries(ROWS))("%s", async (_title, row) => {
    const world = await startWorld();
    row.before?.(world);
    const asked = await ask(world, row);
    row.meanwhile?.(world);
    expect(await searchAll(world.adapter, asked)).toEqual({
      sees: [...row.sees].toSorted(),
      withheld: row.withheld ?? 0,
    });
  });
});
