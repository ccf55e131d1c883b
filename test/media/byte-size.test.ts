import { expect, test } from "vitest";
import { toShownSize } from "../../src/media/file-problem.ts";

test.each([
  [0, "0 bytes"],
  [1_048_575, "1048575 bytes"],
  [1_048_576, "1 MiB"],
  [20_971_520, "20 MiB"],
])("the bot writes %d bytes as people do", (sizeBytes, shown) => expect(toShownSize(sizeBytes)).toBe(shown));
