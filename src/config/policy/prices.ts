import { z } from "zod";

export const prices = z.unknown();
