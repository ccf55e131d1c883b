import { describe, expect, test } from "vitest";
import { readAttachmentId, toAttachments } from "../../../../adapters/slack/api/attachments.ts";
import { ACME } from "../workspace.ts";

describe("the files of a message", () => {
  test("are known by their workspace and their own id", () => {
    const [ref] = toAttachments(ACME, [{ id: "F1", name: "cat.png", size: 3, mode: "hosted" }]);
    expect(ref).toEqual({ platform: "slack", id: "T1:F1", name: "cat.png", sizeBytes: 3 });
    expect(readAttachmentId(ref?.id ?? "")).toEqual({ teamId: "T1", fileId: "F1" });
    expect(readAttachmentId("F1")).toBeUndefined();
  });

  test("of other organisations come without a name, and what is gone does not come", () => {
    const files = [
      { id: "F1", mode: "file_access", file_access: "check_file_info" },
      { id: "F2", mode: "tombstone" },
      { id: "F3", mode: "hidden_by_limit" },
      { name: "no id" },
    ];
    expect(toAttachments(ACME, files)).toEqual([{ platform: "slack", id: "T1:F1", name: "file", sizeBytes: 0 }]);
  });
});
