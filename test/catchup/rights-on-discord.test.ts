import { describe, expect, test } from "vitest";
import { ask, HIDE, SEE, type Step, startWorld, type World } from "../support/rights-on-discord.ts";
import { catchUpAll, type Expected } from "./rights.ts";

/** Without `asks` the question is in #general, without `which` it is about all channels. */
interface Row extends Partial<Step>, Partial<Expected> {
  /** Happens after the first channel was read. */
  during?(world: World): unknown;
  /** Happens while the model writes the summary. */
  afterwards?(world: World): unknown;
}

const OPEN = ["general", "open"];
const HERS = [...OPEN, "staff"];
const dropStaff = ({ drop, ada, roles }: World) => drop(ada, roles.staff.id);
const leaveThread = ({ channel, ada }: World) => channel("secretThread").thread?.memberIds.delete(ada.id);
const openSecret = ({ thread }: World) => thread("general", "secretThread", { isPrivate: true });

const ROWS: Readonly<Record<string, Row>> = {
  "the channel of the question alone": { which: "here", sees: ["general"] },
  "every channel that the asker can open": { sees: HERS },
  "a channel that opens to the asker by name": {
    before: ({ add, ada }) => add("named", { [ada.id]: SEE }, true),
    sees: ["general", "named", "open", "staff"],
  },
  "no channel from which the asker is kept out by name": {
    before: ({ close, ada }) => close("open", ada.id, HIDE),
    sees: ["general", "staff"],
  },
  "no channel in which the asker cannot read earlier messages": {
    before: ({ close, guild }) => close("open", guild.id, { deny: ["ReadMessageHistory"] }),
    sees: ["general", "staff"],
  },
  "no channel whose role was lost between asking and reading": { meanwhile: dropStaff, sees: OPEN },
  "nothing of the channel of the question after its role was lost": {
    asks: "staff",
    which: "here",
    meanwhile: dropStaff,
    sees: [],
  },
  "no channel whose role is lost while the bot reads": { during: dropStaff, sees: OPEN },
  "nothing of the channel of the question if its role is lost while the bot reads": {
    asks: "staff",
    which: "here",
    during: dropStaff,
    sees: [],
  },
  "nothing at all if a role is lost while the model writes": { afterwards: dropStaff },
  "the open threads of a channel with it": {
    which: "here",
    before: ({ thread }) => thread("general", "openThread"),
    sees: ["general", "openThread"],
  },
  "no thread of a channel that the asker cannot open": {
    before({ add, thread, roles, bob }) {
      add("leads", { [roles.lead.id]: SEE }, true);
      thread("leads", "leadsThread", { by: bob });
    },
    sees: HERS,
  },
  "a private thread of the asker": { which: "here", before: openSecret, sees: ["general", "secretThread"] },
  "no private thread of others": {
    before: ({ thread, bob }) => thread("general", "hisThread", { isPrivate: true, by: bob }),
    sees: HERS,
  },
  "no private thread that the asker was removed from meanwhile": {
    which: "here",
    before: openSecret,
    meanwhile: leaveThread,
    sees: ["general"],
  },
  "no private thread that the asker is removed from while the bot reads": {
    which: "here",
    before: openSecret,
    during: leaveThread,
    sees: ["general"],
  },
  "nothing at all if the asker is removed from a private thread while the model writes": {
    which: "here",
    before: openSecret,
    afterwards: leaveThread,
  },
  "every channel of an administrator, and nothing of it once they no longer are one": {
    before({ add, discord, guild, ada }) {
      discord.giveRole(guild, ada, discord.addRole(guild, "admin", ["Administrator"]));
      add("admins", {}, true);
    },
    during({ guild, ada, drop }) {
      for (const role of guild.roles.values()) if (role.name === "admin") drop(ada, role.id);
    },
    sees: HERS,
  },
  "nothing while Discord does not describe the server": {
    meanwhile: ({ discord }) => discord.faults.failNext("GET /guilds/:guild", { status: 403, times: 99 }),
    sees: [],
  },
  "nothing if Discord stops describing the members while the bot reads": {
    during: ({ discord }) => discord.faults.failNext("GET /guilds/:guild/members/:user", { status: 403, times: 99 }),
    sees: [],
  },
};

describe("what a catch-up on Discord shows a person", () => {
  test.each(Object.entries(ROWS))("a catch-up shows %s", async (_title, row) => {
    const world = await startWorld();
    row.before?.(world);
    const asked = await ask(world, { asks: "general", ...row });
    row.meanwhile?.(world);
    const during = () => row.during?.(world);
    const seen = await catchUpAll(world.adapter, asked, row.which ?? "all", {
      during,
      afterwards: () => row.afterwards?.(world),
    });
    expect(seen).toEqual(row.sees?.toSorted());
  });
});
