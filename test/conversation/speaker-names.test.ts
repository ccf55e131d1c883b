import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSpeakerNames } from "../../src/conversation/conversation.ts";

const speaker = (name: string, id = name) => ({ platform: "test", id, name });

describe("createSpeakerNames", () => {
  test("createSpeakerNames keeps the characters of a name that gateways accept", () => {
    const nameOf = createSpeakerNames();
    const names = ["Ada", "José Müller", "  o'Brien  ", "a/b:c", "千恵 Chie", "x".repeat(100)].map((name) =>
      nameOf(speaker(name)),
    );
    expect(names).toEqual(["Ada", "Jose_Muller", "o_Brien", "a_b_c", "Chie", "x".repeat(64)]);
  });

  test("createSpeakerNames replaces a name without such characters by a stable hash", () => {
    const first = createSpeakerNames()(speaker("千恵", "U1"));
    expect(first).toMatch(/^user-[0-9a-z]{7}$/);
    expect(createSpeakerNames()(speaker("🦊", "U1"))).toBe(first);
    expect(createSpeakerNames()(speaker("千恵", "U2"))).not.toBe(first);
  });

  test("createSpeakerNames never gives two people the same name, and always gives one person the same name", () => {
    const people = fc.array(
      fc.record({
        platform: fc.constantFrom("a", "b"),
        id: fc.string({ maxLength: 2 }),
        name: fc.constantFrom("Ada", "Ada!", "千", "", "x".repeat(80)),
      }),
    );
    fc.assert(
      fc.property(people, (people) => {
        const nameOf = createSpeakerNames();
        const given = new Map<string, string>();
        for (const person of people) {
          const name = nameOf(person);
          expect(name).toMatch(/^[\w-]{1,64}$/);
          // A person who changes their name gets the new name.
          given.set(JSON.stringify([person.platform, person.id, person.name]), name);
        }
        for (const person of people)
          expect(nameOf(person)).toBe(given.get(JSON.stringify([person.platform, person.id, person.name])));
        const owners = new Map<string, Set<string>>();
        for (const [key, name] of given)
          owners.set(
            name,
            (owners.get(name) ?? new Set()).add(JSON.stringify((JSON.parse(key) as string[]).slice(0, 2))),
          );
        for (const people of owners.values()) expect(people.size).toBe(1);
      }),
    );
  });
});
