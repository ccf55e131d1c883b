import { describe, expect, test } from "vitest";
import { PARTITIONS, partitionOf } from "../../src/queue/partition.ts";

describe("the partition of a conversation", () => {
  test("conversations of one Slack workspace, and threads of one Discord channel, share a partition", () => {
    expect(partitionOf("slack:T1:C1:1.2")).toBe(partitionOf("slack:T1:C2:3.4"));
    expect(partitionOf("discord:12:99")).toBe(partitionOf("discord:12"));
  });

  test("a private question has the partition of the channel in which its author asks", () => {
    expect(partitionOf("local:general~ada")).toBe(partitionOf("local:general"));
    expect(partitionOf("slack:T1~U1")).toBe(partitionOf("slack:T1:C1:1.2"));
  });

  test("every version computes the same partition of a conversation", () => {
    expect(["slack:T1:C1:1.2", "discord:12:99", "local:general", ""].map(partitionOf)).toEqual([12, 41, 63, 2]);
  });

  test("many conversations spread over all partitions", () => {
    const used = new Set(Array.from({ length: 2_000 }, (_, index) => partitionOf(`slack:T${index}:C:1`)));
    expect(used.size).toBe(PARTITIONS);
  });
});
